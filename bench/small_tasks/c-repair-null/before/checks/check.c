#include <stdio.h>

#include "../length.h"

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    printf("length(\"four\") must be 4: ");
    printf("it is %d\n", length("four"));
    printf("length(NULL) must be 0: ");
    printf("it is %d\n", length(NULL));
    return length("four") != 4 || length(NULL) != 0;
}
