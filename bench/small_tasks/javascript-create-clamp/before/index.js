module.exports = {
  round: require("./lib/round"),
};
