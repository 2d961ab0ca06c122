module.exports = {
  add: require("./add"),
  old: require("./old"),
};
