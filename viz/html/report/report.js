'use strict';
// When the user points at a chart, shows the values there; each line has a list of its corners, as x and value.
const tip = document.getElementById('tip');
const number = value => Math.abs(value) >= 1e4 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(3) : String(+value.toPrecision(4));
for (const chart of document.querySelectorAll('svg.chart')) {
  const [left, right, first, last] = chart.dataset.plot.split(' ').map(Number);
  const cursor = chart.querySelector('.cursor');
  const corners = [...chart.querySelectorAll('.line[data-at]')].map(line => ({
    name: line.dataset.name,
    points: line.dataset.at.split(' ').map(pair => pair.split(',').map(Number)),
  }));
  chart.addEventListener('pointermove', event => {
    const box = chart.getBoundingClientRect(), x = (event.clientX - box.left) * chart.viewBox.baseVal.width / box.width;
    const texts = [];
    let step = null;
    for (const {name, points} of corners) {
      const near = points.reduce((best, one) => Math.abs(one[0] - x) < Math.abs(best[0] - x) ? one : best);
      const at = Math.round(first + (near[0] - left) / (right - left) * (last - first));
      if (step === null) { step = at; cursor.setAttribute('x1', near[0]); cursor.setAttribute('x2', near[0]); }
      texts.push((name ? name + ': ' : '') + number(near[1]) + (at === step ? '' : ' (step ' + at + ')'));
    }
    if (step === null) return;
    cursor.removeAttribute('visibility');
    tip.textContent = 'step ' + step + '\n' + texts.join('\n');
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';
  });
  chart.addEventListener('pointerleave', () => { tip.hidden = true; cursor.setAttribute('visibility', 'hidden'); });
}
// When printing, all folded parts are opened.
addEventListener('beforeprint', () => { for (const fold of document.querySelectorAll('details')) fold.open = true; });
