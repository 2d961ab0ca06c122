from util import count_words


def summary(text):
    return f"{count_words(text)} words"
