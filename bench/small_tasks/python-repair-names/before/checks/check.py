from names import full_name

found = full_name("Ada", "Lovelace")
assert found == "Lovelace, Ada", f"full_name('Ada', 'Lovelace') is {found!r}, it must be 'Lovelace, Ada'"
