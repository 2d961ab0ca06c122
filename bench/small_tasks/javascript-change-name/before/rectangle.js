function size(width, height) {
  return width * height;
}

module.exports = { size };
