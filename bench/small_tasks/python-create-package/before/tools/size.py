def kilobytes(size):
    return size / 1000
