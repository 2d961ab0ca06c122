def old_total(prices):
    return sum(prices) * 1.16
