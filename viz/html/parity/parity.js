'use strict';
// Units of rows open and close; the numbers of the cell under the pointer, or with the focus, are shown.
const tip = document.getElementById('tip'), map = document.querySelector('.map');
tip.setAttribute('role', 'status');

function unfold(button, open) {
  button.setAttribute('aria-expanded', open);
  document.getElementById(button.getAttribute('aria-controls')).hidden = !open;
}
const buttons = [...map.querySelectorAll('button')];
for (const button of buttons) button.addEventListener('click', () => unfold(button, button.getAttribute('aria-expanded') !== 'true'));
for (const one of document.querySelectorAll('[data-all]')) one.addEventListener('click', () => buttons.forEach(button => unfold(button, one.dataset.all === 'open')));

const rank = cell => map.tHead.rows[0].cells[cell.cellIndex].title;
const is_cell = cell => cell && (cell.dataset.n || cell.dataset.of || cell.className === 'no');
const size = button => document.getElementById(button.getAttribute('aria-controls')).querySelectorAll('.tensor').length;
function words(cell) {
  const own = cell.parentNode, row = cell.dataset.of ? document.getElementById(cell.dataset.of) : own;
  const of = cell.dataset.of ? ', the furthest of ' + size(own.querySelector('button')) + ' tensors' : '';
  return row.cells[0].textContent + of + '\n' + rank(cell) + '\n' + (row.cells[cell.cellIndex].dataset.n || 'has no part of it');
}
function show(cell) {
  tip.textContent = words(cell);
  tip.hidden = false;
  const box = cell.getBoundingClientRect();
  tip.style.left = Math.max(8, Math.min(box.left + 10, innerWidth - tip.offsetWidth - 8)) + 'px';
  tip.style.top = (box.bottom + 8 + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 8 : box.bottom + 8) + 'px';
}
const hide = () => { tip.hidden = true; };
map.addEventListener('pointerover', event => { const cell = event.target.closest('td'); if (is_cell(cell)) show(cell); else hide(); });
map.addEventListener('pointerleave', hide);
map.addEventListener('focusin', event => { if (is_cell(event.target)) show(event.target); });
map.addEventListener('focusout', hide);

// Tab reaches one cell, and arrow keys lead from there to the others. A window without the focus sends no focusin event, so go() shows the cell itself.
let here = map.querySelector('.first [data-n]') || map.querySelector('[data-n], [data-of]');
if (here) here.tabIndex = 0;
function go(cell) {
  here.tabIndex = -1;
  here = cell;
  here.tabIndex = 0;
  here.focus();
  show(here);
}
map.addEventListener('keydown', event => {
  if (event.key === 'Escape') hide();
  const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
  if (!step || event.target.tagName !== 'TD') return;
  event.preventDefault();
  const rows = [...map.rows].filter(row => is_cell(row.cells[1]) && !row.parentNode.hidden);
  const row = rows[rows.indexOf(event.target.parentNode) + step[0]], cell = row && row.cells[event.target.cellIndex + step[1]];
  if (is_cell(cell)) go(cell);
});
map.addEventListener('click', event => { const cell = event.target.closest('td'); if (is_cell(cell)) go(cell); });
