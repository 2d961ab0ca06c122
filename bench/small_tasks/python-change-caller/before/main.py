from greeting import greet

print(greet("Ada"))
