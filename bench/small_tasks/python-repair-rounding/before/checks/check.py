from prices import total, with_tax

assert total([1, 2]) == 3, "total([1, 2]) is not 3"
found = with_tax(9.99)
assert found == 11.89, f"with_tax(9.99) is {found}, but a price has two decimals: it must be 11.89"
