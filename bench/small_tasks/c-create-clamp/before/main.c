#include <stdio.h>

#include "clamp.h"

int main(void) {
    printf("%d %d %d\n", clamp(-5, 0, 9), clamp(4, 0, 9), clamp(12, 0, 9));
    return 0;
}
