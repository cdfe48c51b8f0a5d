// Measures the picture that is in the page, and leaves what is wrong with it in the title of the document.
(() => {
  const wrong = [];
  const svg = document.querySelector("svg");
  const frame = svg.getBoundingClientRect();
  const page = document.documentElement;
  if (page.scrollWidth > window.innerWidth) wrong.push(`the page is ${page.scrollWidth} pixels wide in a window of ${window.innerWidth}`);
  if (matchMedia("(prefers-color-scheme: dark)").matches !== DARK) wrong.push("the browser does not show the color scheme that was asked for");

  const channels = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number);
  const luminance = (color) => {
    const [r, g, b] = channels(color).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = getComputedStyle(svg.querySelector(".page")).fill;
  const plot = getComputedStyle(svg.querySelector(".plot")).fill;

  const texts = [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim() !== "");
  const boxes = texts.map((t) => t.getBoundingClientRect());
  texts.forEach((t, i) => {
    const name = JSON.stringify(t.textContent), box = boxes[i], style = getComputedStyle(t);
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      wrong.push(`${name} sticks out of the picture`);
    const size = parseFloat(style.fontSize) * frame.width / svg.viewBox.baseVal.width;
    if (size < SMALLEST) wrong.push(`${name} is ${size.toFixed(1)} pixels high`);
    if (contrast(style.fill, ground) < 4.5) wrong.push(`${name} has a contrast of ${contrast(style.fill, ground).toFixed(1)}`);
    for (let j = 0; j < i; j++) {
      const other = boxes[j];
      const across = Math.min(box.right, other.right) - Math.max(box.left, other.left);
      const down = Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top);
      if (across > 1 && down > 3) wrong.push(`${name} overlaps ${JSON.stringify(texts[j].textContent)}`);
    }
  });

  const bars = [...svg.querySelectorAll("g > rect[class]")];
  if (bars.length === 0) wrong.push("there is no lane");
  for (const bar of bars) {
    const box = bar.getBoundingClientRect();
    if (box.left < frame.left || box.right > frame.right + 1) wrong.push(`a span of ${bar.getAttribute("class")} sticks out of the picture`);
    if (box.height < 4) wrong.push(`a lane is ${box.height.toFixed(1)} pixels high`);
  }
  for (const selector of [".line.available", ".floor"]) {
    const found = contrast(getComputedStyle(svg.querySelector(selector)).stroke, plot);
    if (found < 3) wrong.push(`${selector} has a contrast of ${found.toFixed(1)}`);
  }
  for (const number of [0, 1]) {
    const sample = svg.querySelector(`.rev${number}`);
    const found = sample ? contrast(getComputedStyle(sample).fill, ground) : 0;
    if (found < 3) wrong.push(`revision ${number} has a contrast of ${found.toFixed(1)}`);
  }
  const words = document.querySelector("pre");
  if (words && contrast(getComputedStyle(words).color, getComputedStyle(words).backgroundColor) < 4.5) wrong.push("the words have too little contrast");
  const requests = performance.getEntriesByType("resource").filter((r) => !r.name.startsWith("data:"));
  if (requests.length > 0) wrong.push(`it loads ${requests[0].name}`);
  document.title = "measured: " + [...new Set(wrong)].slice(0, 12).join("; ");
})();
