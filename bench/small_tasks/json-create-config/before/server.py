import json

with open("config/server.json") as file:
    config = json.load(file)
print(config["host"], config["port"] + 0, "debug" if config["debug"] else "production")
