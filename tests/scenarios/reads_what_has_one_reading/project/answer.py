answer = 0
