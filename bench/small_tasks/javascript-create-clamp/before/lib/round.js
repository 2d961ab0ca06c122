module.exports = function round(value, digits) {
  return Number(value.toFixed(digits));
};
