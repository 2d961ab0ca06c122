const { size } = require("./rectangle");

console.log(`The room has ${size(3, 4)} square metres.`);
