int largest(const int *numbers, int count) {
    int found = 0;
    for (int i = 0; i < count; i++)
        if (numbers[i] > found)
            found = numbers[i];
    return found;
}
