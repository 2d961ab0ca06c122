#include <stdio.h>

int largest(const int *numbers, int count);

int main(void) {
    int cold[] = {-7, -3, -9}, mixed[] = {4, -1, 8};
    printf("%d %d\n", largest(cold, 3), largest(mixed, 3));
    return 0;
}
