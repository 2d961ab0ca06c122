import json

with open("users.json") as file:
    roles = {user["name"]: user["role"] for user in json.load(file)}
wanted = {"Ann": "admin", "Bob": "reader", "Carol": "editor"}
for name, role in wanted.items():
    assert roles.get(name) == role, f"users.json: the role of {name} is {roles.get(name)!r}, it must be {role!r}"
assert roles.keys() == wanted.keys(), f"users.json has other users: {sorted(roles)}"
