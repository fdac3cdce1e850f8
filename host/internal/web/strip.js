'use strict';
// The strip: a lane for each job, a cell for each tick, and under the cells a line for the replica that ran it. Only the lanes in
// sight are drawn, so that hundreds scroll. It is asked for after news of the list, and gets the lanes that have changed.
const makeStrip = ({ $, el, attr, set, plain, now, stamp, ask, sync, jobPath, go, say, counted }) => {
  const pace = 2000, styles = 8, quarter = 900; // seconds that a cell of a day has
  const box = $('lanes'), sheet = $('lanes-sheet'), tip = $('strip-tip'), phone = matchMedia('(max-width: 45rem)');
  const outcomes = {
    s: 'succeeded', f: 'failed', h: 'stalled', a: 'abandoned', c: 'cancelled', m: 'missed', k: 'skipped', r: 'running',
    i: 'running on a replica that may be gone', n: 'to come',
  };
  // An outcome is seen by its shape, too: colours alone are not for all.
  const arc = (rx, ry, to) => `a${rx} ${ry} 0 1 1 ${to} 0`;
  const halves = (x, rx, ry) => `M${x} ${x + ry}${arc(rx, ry, 2 * rx)}${arc(rx, ry, -2 * rx)}z`;
  const round = (w, h, by) => halves(by, w / 2 - by, h / 2 - by);
  const frame = (w, h, by) => `M${by} ${by}h${w - 2 * by}v${h - 2 * by}h${2 * by - w}z`;
  const shapes = {
    s: (w, h) => frame(w, h, 0),
    f: (w, h) => `M1 1L${w - 1} ${h - 1}M${w - 1} 1L1 ${h - 1}`,
    h: (w, h) => `M0 0h${w / 3}v${h}h${-w / 3}zM${w * 2 / 3} 0h${w / 3}v${h}h${-w / 3}z`,
    a: (w, h) => `M0 0L${w} ${h}H0z`,
    c: (w, h) => `M${w / 2} 0L${w} ${h / 2}L${w / 2} ${h}L0 ${h / 2}z`,
    k: (w, h) => `M0 ${h / 2 - 1.5}h${w}v3h${-w}z`,
    m: (w, h) => frame(w, h, 1),
    r: (w, h) => round(w, h, 0),
    i: (w, h) => round(w, h, 1),
    n: (w, h) => frame(w, h, 0.5),
  };

  // What is known. An answer has each text once, and the lanes that have changed since the one before.
  const lanes = new Map(), replicas = new Map();
  let order = [], mark = '', filter = '', trouble = false, day = false, asked = 0, timer = 0, version = 0;
  const decode = (l, a) => { // its texts are plain
    let at = 0;
    const cells = l.at.map((d, i) => {
      at += d;
      return { at, what: l.what[i], by: a.replicas[l.by[i] - 1] || '', why: a.reasons[l.why[i] - 1] || '', ticks: l.ticks[i] };
    });
    const next = (l.next || []).map((at) => ({ at, what: 'n', by: '', why: '', ticks: 1 }));
    return { job: l.job, trouble: !!l.trouble, cells, next, since: l.since, version: ++version };
  };
  const take = (a) => {
    mark = a.mark;
    a.replicas = a.replicas.map(plain);
    a.reasons = a.reasons.map(plain);
    for (const name of [...a.replicas].sort()) if (!replicas.has(name)) replicas.set(name, replicas.size % styles);
    for (const l of a.lanes) lanes.set(l.job, decode(l, a));
    arrange();
    const ticks = (a.atLeast ? 'at least ' : '') + a.ticks.toLocaleString('en');
    set($('strip-facts'), counted(a.matched, 'job') + ' · ' + ticks + ' ticks in 24 h · ');
    set($('strip-twice'), 'ran twice ' + a.twice);
    $('strip-twice').className = a.twice ? 'tone-bad' : '';
    set($('strip-note'), a.note || '');
    $('strip').hidden = !a.matched && !filter;
    return a.unread;
  };
  const arrange = () => {
    order = [...lanes.values()].filter((l) => !trouble || l.trouble);
    order.sort((a, b) => b.trouble - a.trouble || (a.job < b.job ? -1 : 1)); // a phone shows four: those that matter
    draw();
  };
  const forget = () => { mark = ''; lanes.clear(); };
  const request = async () => {
    timer = 0;
    if (document.hidden || !$('strip').open || $('list').hidden) return;
    asked = Date.now();
    const query = new URLSearchParams(), of = [filter, day].join();
    if (mark && !filter) query.set('after', mark); // what a filter leaves out now is not in an answer about changes
    if (filter) query.set('q', filter);
    if (day) query.set('from', '24h');
    let unread = 0;
    try {
      const answer = await ask('/strip?' + query);
      if (of !== [filter, day].join()) return; // it is of another choice, whose answer comes
      if (answer.ok) {
        if (!query.has('after')) forget();
        unread = take(answer.body);
      } else set($('strip-note'), 'This is not asked for anew: ' + answer.body.error);
    } catch (err) { return; } // the stream tells that, too
    if (unread) want();
  };
  const want = (soon) => {
    if (soon) { clearTimeout(timer); timer = 0; asked = 0; }
    if (!timer) timer = setTimeout(request, Math.max(0, asked + pace - Date.now()));
  };
  const follow = (view) => { // after each news of the list
    const changed = view.q !== filter;
    if (view.trouble !== trouble) { trouble = view.trouble; arrange(); }
    filter = view.q;
    if (changed) forget();
    want(changed);
  };

  // Where things are, by the width. Cells end at the line of now; what is to come is right of it.
  const wide = () => day && !phone.matches; // cells are where their time is
  const place = () => {
    const narrow = phone.matches, width = box.clientWidth, left = narrow ? 0 : 190, next = narrow ? 3 : 5, step = 14;
    const room = width - left - next * step - 12, many = narrow ? 20 : day ? 97 : 60;
    const count = Math.max(1, wide() ? many : Math.min(many, Math.floor(room / step)));
    const pitch = Math.min(17, room / count), now = left + count * pitch + 4;
    return { narrow, width, left, next, count, pitch, step, now, height: narrow ? 42 : 24, top: narrow ? 21 : 4, cell: 11 };
  };
  const quarters = (seconds) => Math.floor(seconds / quarter);
  const back = (c, i, n) => wide() ? 1 + quarters(now() / 1000) - quarters(c.at) : n - i; // how many cells from the line of now
  const textOf = (c) => (c.ticks > 1 ? counted(c.ticks, 'tick') + ' up to ' : '') + stamp(c.at * 1000) + ' ' + outcomes[c.what]
    + (c.by ? ' on ' + c.by : '') + (c.why ? ': ' + c.why : '');

  const seen = (p, l) => l.cells.slice(-p.count).concat(l.next.slice(0, p.next));
  const models = new Map(); // a copy is made sooner than a new element, and a lane has sixty
  const drawCell = (c, x, p, w) => {
    const kind = c.what + w;
    if (!models.has(kind)) {
      const d = shapes[c.what](w, p.cell);
      models.set(kind, el('<path', { class: 'cell cell-' + c.what, role: 'gridcell', tabindex: -1, d }));
    }
    const cell = models.get(kind).cloneNode();
    cell.setAttribute('transform', `translate(${x.toFixed(1)} ${p.top})`);
    cell.setAttribute('data-at', c.at + c.what);
    cell.setAttribute('aria-label', textOf(c));
    return cell;
  };
  const drawLane = (l, p) => {
    const all = seen(p, l), n = all.filter((c) => c.what !== 'n').length, w = Math.max(2, p.pitch - 3), y = p.top + p.cell + 3.5;
    const line = el('<line', { class: 'now', x1: p.now, x2: p.now, y1: 0, y2: p.height });
    const svg = el('<svg', { width: p.width, height: p.height, role: 'none' }, line);
    const xs = all.map((c, i) => c.what === 'n' ? p.now + 5 + (i - n) * p.step : p.now - 4 - p.pitch * back(c, i, n));
    for (let i = 0, j; i < n; i = j) { // one line for each replica in turn
      for (j = i + 1; j < n && all[j].by === all[i].by && xs[j] - xs[j - 1] < 1.5 * p.pitch; j++);
      if (!all[i].by) continue;
      const x1 = xs[i].toFixed(1), x2 = (xs[j - 1] + w).toFixed(1);
      svg.append(el('<line', { class: 'by by-' + replicas.get(all[i].by), x1, x2, y1: y, y2: y }));
    }
    all.forEach((c, i) => svg.append(drawCell(c, xs[i], p, c.what === 'n' ? p.cell : w)));
    const link = el('a', { href: jobPath(l.job), 'data-local': '', tabindex: -1 }, l.job);
    const head = el('span', { role: 'rowheader' }, link);
    return Object.assign(el('div', { class: l.trouble ? 'lane trouble' : 'lane', role: 'row' }, head, svg), { lane: l, all, xs });
  };

  // The lanes in sight, and a few around them. They stay as they are until something in them changes.
  const rows = new Map();
  let laid = '', frameOf = 0, active = null;
  const draw = () => {
    frameOf = 0;
    if (!$('strip').open || !box.clientWidth) return;
    const p = place(), layout = [p.width, p.narrow, wide() && quarters(now() / 1000)].join();
    const focused = box.contains(document.activeElement), kept = new Set();
    box.style.height = Math.min(order.length, p.narrow ? 4 : 10) * p.height + 'px';
    sheet.style.height = order.length * p.height + 'px';
    attr(box, 'aria-rowcount', order.length);
    const from = Math.floor(box.scrollTop / p.height) - 3, to = from + Math.ceil(box.clientHeight / p.height) + 7;
    order.forEach((l, i) => {
      if ((i < from || i >= to) && !(focused && active && active.job === l.job)) return;
      let row = rows.get(l.job);
      if (!row || row.lane !== l || row.layout !== layout) {
        const made = drawLane(l, p);
        made.layout = layout;
        if (row) row.replaceWith(made); else sheet.append(made);
        rows.set(l.job, row = made);
      }
      if (row.index !== i) {
        row.index = i;
        attr(row, 'aria-rowindex', i + 1);
        row.style.transform = `translateY(${i * p.height}px)`;
      }
      kept.add(l.job);
    });
    for (const [job, row] of rows) if (!kept.has(job)) { row.remove(); rows.delete(job); }
    if (laid !== layout + version) { laid = layout + version; explain(p); }
    keepFocus(focused);
  };
  const soon = () => { if (!frameOf) frameOf = requestAnimationFrame(draw); };
  box.addEventListener('scroll', () => { hide(); soon(); }, { passive: true });
  new ResizeObserver(soon).observe(box);

  // The legend has what there was to see: what comes and goes, as a run, would move all that is below it.
  const kinds = new Set('srn');
  const explain = (p) => {
    const by = new Set();
    for (const l of order) for (const c of seen(p, l)) { kinds.add(c.what); if (c.by) by.add(c.by); }
    const items = Object.keys(outcomes).filter((what) => kinds.has(what)).map((what) => ({ what, text: outcomes[what] }));
    const names = [...by].sort(), shown = names.slice(0, styles).map((name) => ({ name, text: name }));
    if (names.length > styles) shown.push({ text: 'and ' + counted(names.length - styles, 'replica') + ' more' });
    sync($('strip-legend'), [...items, ...shown], (x) => x.what ? x.what : '+' + x.text, (x) => el('li', {}, x.what || x.name
      ? el('<svg', { width: x.what ? 11 : 20, height: 11, 'aria-hidden': 'true' }, x.what
        ? el('<path', { class: 'cell cell-' + x.what, d: shapes[x.what](11, 11) })
        : el('<line', { class: 'by by-' + replicas.get(x.name), x1: 0, x2: 20, y1: 6, y2: 6 })) : null, x.text), () => {});
    const scale = $('strip-scale'), marks = [el('<text', { x: p.now, y: 11, 'text-anchor': 'middle' }, 'now')];
    for (const h of wide() ? [6, 12, 18, 24] : []) {
      marks.push(el('<text', { x: (p.now - 4 - p.pitch * 4 * h).toFixed(), y: 11 }, '−' + h + ' h'));
    }
    attr(scale, 'width', p.width);
    scale.replaceChildren(...marks);
  };

  // One cell can be reached by the tab key, and from there each by the arrows: hundreds of stops would be in the way.
  const cellsOf = (row) => [row.querySelector('a'), ...row.querySelectorAll('.cell')];
  const find = () => {
    const row = active && rows.get(active.job);
    return row && (active.at === '' ? row.querySelector('a') : row.querySelector(`[data-at="${active.at}"]`));
  };
  const keepFocus = (focused) => {
    let node = find();
    if (!node) {
      const row = active && rows.get(active.job) || sheet.firstElementChild, all = row ? cellsOf(row) : [];
      node = all[all.length - 1];
      active = node ? { job: row.lane.job, at: node.dataset.at || '' } : null;
    }
    for (const old of box.querySelectorAll('[tabindex="0"]')) if (old !== node) attr(old, 'tabindex', -1);
    if (node) attr(node, 'tabindex', 0);
    if (node && focused && document.activeElement !== node) node.focus({ preventScroll: true });
  };
  const moveTo = (i, pick) => {
    const l = order[i];
    if (!l) return;
    const p = place(), top = i * p.height;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + p.height > box.scrollTop + box.clientHeight) box.scrollTop = top + p.height - box.clientHeight;
    active = { job: l.job, at: active.at };
    draw();
    const all = cellsOf(rows.get(l.job)), node = all[Math.max(0, Math.min(all.length - 1, pick(all)))];
    active.at = node.dataset.at || '';
    keepFocus(false);
    node.focus({ preventScroll: true });
  };
  box.addEventListener('keydown', (e) => {
    const row = e.target.closest('.lane');
    if (!row || e.metaKey || e.ctrlKey || e.altKey) return;
    const at = cellsOf(row).indexOf(e.target), right = cellsOf(row).length - at, i = row.index;
    const moves = {
      ArrowLeft: () => moveTo(i, () => at - 1), ArrowRight: () => moveTo(i, () => at + 1),
      ArrowUp: () => moveTo(i - 1, (all) => all.length - right), ArrowDown: () => moveTo(i + 1, (all) => all.length - right),
      Home: () => moveTo(i, () => 0), End: () => moveTo(i, (all) => all.length - 1),
      PageUp: () => moveTo(Math.max(0, i - 9), (all) => all.length - right),
      PageDown: () => moveTo(Math.min(order.length - 1, i + 9), (all) => all.length - right),
      Enter: () => { if (at) go(jobPath(row.lane.job), true); else e.target.click(); }, Escape: () => hide(),
    };
    if (!moves[e.key]) return;
    e.preventDefault();
    moves[e.key]();
  });

  // What a cell says, beside it: when the pointer is over it, or the keyboard on it. Why a tick was not run is asked for once it
  // rests there.
  const sentences = new Map();
  let resting = 0, told = null;
  const hide = () => { clearTimeout(resting); told = null; tip.hidden = true; };
  const put = (row, i) => {
    const around = $('strip').getBoundingClientRect(), at = row.getBoundingClientRect();
    tip.style.left = Math.max(0, Math.min(row.xs[i], around.width - tip.offsetWidth)) + 'px';
    tip.style.top = at.bottom - around.top + 2 + 'px';
  };
  const tell = (row, i, aloud) => {
    const c = row.all[i];
    if (!c) { hide(); return; }
    if (told === c) return;
    hide();
    told = c;
    const show = (why) => {
      set(tip, textOf(c) + (why ? '; ' + why : ''));
      tip.style.left = 0; // its width is that of the text, not of the room at the right
      tip.hidden = false;
      put(row, i);
    };
    const key = row.lane.job + ' ' + c.at;
    show(sentences.get(key));
    if (!['m', 'k'].includes(c.what) || c.ticks > 1 || sentences.has(key)) return;
    resting = setTimeout(async () => {
      try {
        const answer = await ask('/jobs/' + encodeURIComponent(row.lane.job) + '/why?at=' + new Date(c.at * 1000).toISOString());
        if (!answer.ok) return;
        if (sentences.size > 100) sentences.clear();
        sentences.set(key, answer.body.sentence);
        if (told === c) { show(answer.body.sentence); if (aloud) say(answer.body.sentence); }
      } catch (err) { /* there is the reason of the outcome */ }
    }, 400);
  };
  box.addEventListener('pointermove', (e) => {
    const row = e.target.closest('.lane');
    if (!row) { hide(); return; }
    const x = e.clientX - row.getBoundingClientRect().left, p = place();
    tell(row, row.all.findIndex((c, i) => x >= row.xs[i] - 1.5 && x < row.xs[i] + (c.what === 'n' ? p.step : p.pitch)));
  });
  box.addEventListener('pointerleave', hide);
  box.addEventListener('focusin', (e) => {
    const row = e.target.closest('.lane'), at = e.target.dataset.at || '';
    if (!row) return;
    active = { job: row.lane.job, at };
    keepFocus(false);
    tell(row, row.all.findIndex((c) => c.at + c.what === at), true);
  });
  box.addEventListener('focusout', hide);
  box.addEventListener('click', (e) => {
    const cell = e.target.closest('.cell');
    if (cell) cell.focus({ preventScroll: true });
  });

  // Whether it is open is remembered in this browser.
  try { $('strip').open = localStorage.getItem('soloist-strip') !== 'closed'; } catch (err) { /* it may refuse */ }
  $('strip').addEventListener('toggle', () => {
    try { localStorage.setItem('soloist-strip', $('strip').open ? 'open' : 'closed'); } catch (err) { /* it may refuse */ }
    if ($('strip').open) { draw(); want(true); }
  });
  $('strip-day').addEventListener('click', () => {
    day = !day;
    attr($('strip-day'), 'aria-pressed', String(day));
    forget();
    want(true);
  });
  phone.addEventListener('change', () => { if (day) $('strip-day').click(); });
  return { follow };
};
