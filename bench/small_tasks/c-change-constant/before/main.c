#include <stdio.h>

#include "config.h"

int main(void) {
    for (int i = 0; i < 3; i++)
        printf("Hello, %s\n", NAME);
    return 0;
}
