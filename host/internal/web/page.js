'use strict';
(() => {
  // Texts of jobs and blobs reach the page as text nodes and attributes alone, never as markup.
  const $ = (id) => document.getElementById(id);
  const hidden = /[\p{Cc}\p{Cf}]/gu;
  const plain = (text) => String(text).replace(hidden, (c) => '\\u{' + c.codePointAt(0).toString(16) + '}');
  const set = (node, text) => { text = plain(text); if (node.textContent !== text) node.textContent = text; };
  const attr = (node, name, value) => {
    if (value === null || value === undefined || value === false) node.removeAttribute(name);
    else if (node.getAttribute(name) !== plain(value)) node.setAttribute(name, plain(value));
  };
  const el = (tag, attrs = {}, ...children) => {
    const node = tag[0] === '<' ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(1)) : document.createElement(tag);
    for (const [name, value] of Object.entries(attrs)) attr(node, name, value);
    for (const child of children) if (child !== null) node.append(typeof child === 'string' ? plain(child) : child);
    return node;
  };

  // Times. The server's clock counts: this machine's may be wrong.
  let ahead = 0; // of this machine's clock
  const now = () => Date.now() - ahead;
  const stamp = (at) => new Date(at).toISOString().replace('T', ' ').replace(/\.\d+/, '');
  const backfilled = (b) => b.state + ', ' + b.done + ' of ' + counted(b.ticks, 'tick') + ' from ' + stamp(b.from) + ' to ' + stamp(b.to) + ', by ' + b.by + (b.reason ? ': ' + b.reason : '');
  const awaits = (j) => j.awaits ? ', waits for ' + j.awaits : '';
  const counted = (n, thing) => n + ' ' + thing + (n === 1 ? '' : 's');
  const roughly = (ms) => {
    const s = Math.max(0, Math.floor(ms / 1000));
    if (s < 60) return s + 's';
    if (s < 3600) return Math.floor(s / 60) + 'm ' + s % 60 + 's';
    if (s < 48 * 3600) return Math.floor(s / 3600) + 'h ' + Math.floor(s % 3600 / 60) + 'm';
    return Math.floor(s / 86400) + 'd ' + Math.floor(s % 86400 / 3600) + 'h';
  };
  const took = (seconds) => seconds < 1 ? Math.round(seconds * 1000) + ' ms' : seconds < 60 ? +seconds.toFixed(1) + ' s' : roughly(seconds * 1000);
  const forms = {
    next: (at) => at > now() ? 'in ' + roughly(at - now()) : 'due',
    ago: (at) => at > now() ? 'in ' + roughly(at - now()) : roughly(now() - at) + ' ago',
    since: (at) => 'for ' + roughly(now() - at),
    over: (at) => 'over its time-out by ' + roughly(now() - at),
  };
  const timed = (at, form) => el('time', { datetime: at, title: stamp(at), 'data-form': form }, forms[form](Date.parse(at)));
  setInterval(() => {
    if (!document.hidden) for (const node of document.querySelectorAll('time[data-form]')) set(node, forms[node.dataset.form](Date.parse(node.dateTime)));
  }, 1000);

  // Which part of the page is shown. The path is .../, .../jobs/NAME, .../shards/NAME or .../runs/ID, perhaps
  // below a prefix of a proxy.
  const base = location.pathname.replace(/(?:jobs|shards|runs)\/[^/]*$/, '').replace(/[^/]*$/, '');
  const api = base + 'api/v1';
  const view = { job: null, run: null, of: null, q: '', trouble: false, is: '', sort: 'trouble', offset: 0 };
  const route = () => {
    const match = location.pathname.slice(base.length).match(/^(jobs|shards|runs)\/([^/]+)$/) || [];
    const name = match[2] ? decodeURIComponent(match[2]) : null;
    view.run = match[1] === 'runs' ? name : null;
    view.of = match[1] === 'shards' ? name : null;
    view.job = view.of ? null : view.run ? view.run.split('@')[0] : name;
    const given = new URLSearchParams(location.search);
    view.q = given.get('q') || '';
    view.trouble = given.get('trouble') === 'true';
    view.is = given.get('is') || '';
    view.sort = given.get('sort') || 'trouble';
    view.offset = +given.get('offset') || 0;
  };
  const query = () => {
    const out = new URLSearchParams();
    if (view.q) out.set('q', view.q);
    if (view.trouble) out.set('trouble', 'true');
    if (view.is) out.set('is', view.is);
    if (view.sort !== 'trouble') out.set('sort', view.sort);
    if (view.offset) out.set('offset', view.offset);
    return out.toString();
  };
  const wanted = () => { // of the list or of shards
    const out = new URLSearchParams(view.of ? { of: view.of } : query());
    out.set('sort', view.sort);
    if (!view.of) out.set('whole', 'true');
    return out.toString();
  };
  const withQuery = (path, text) => text ? path + '?' + text : path;
  const jobPath = (name) => base + 'jobs/' + encodeURIComponent(name);
  const shardsPath = (name) => base + 'shards/' + encodeURIComponent(name);
  const runPath = (id) => base + 'runs/' + encodeURIComponent(id).replace(/%40/g, '@').replace(/%3A/g, ':');
  const runLink = (id, text) => el('a', { href: runPath(id), 'data-local': '' }, text);
  const go = (path, focus) => { history.pushState(null, '', path); route(); shown = null; connect(); if (focus) focusNext = true; };
  let focusNext = false;
  addEventListener('popstate', () => { route(); shown = null; focusNext = true; connect(); });
  document.addEventListener('click', (e) => {
    const a = e.target.closest('a[data-local]');
    if (!a || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(a.getAttribute('href'), true);
  });
  for (const id of ['home', 'back', 'shards-back', 'run-back']) { $(id).href = base; $(id).dataset.local = ''; }

  // News come by a stream. Where it does not work, as behind a proxy that waits for the end of an answer, they are asked for.
  const pollTime = 5000, silence = 25000, streamAgain = 60000;
  let source = null, timer = 0, heard = 0, streamless = 0, turn = 0;
  const link = (text, kind) => { set($('link'), text); $('link').className = 'link ' + kind; };
  let ill = ''; // what keeps the news from being good
  const wellLink = (text) => ill ? link(ill, ill === farStore ? 'off' : 'old') : link(text, 'live');
  const farStore = 'storage out of reach';
  const disconnect = () => { turn++; if (source) source.close(); source = null; clearTimeout(timer); };
  const connect = () => {
    disconnect();
    if (document.hidden) return;
    if (Date.now() < streamless || !window.EventSource) { poll(); return; }
    heard = Date.now();
    const s = source = new EventSource(api + '/' + withQuery('stream', view.job ? 'job=' + encodeURIComponent(view.job) : wanted()));
    const hear = (f) => (e) => { if (s !== source) return; heard = Date.now(); f(JSON.parse(e.data)); wellLink('live'); };
    s.addEventListener('news', hear(render));
    s.addEventListener('beat', hear((beat) => { ahead = Date.now() - Date.parse(beat.time); }));
    s.onerror = () => {
      if (s !== source) return;
      link('reconnecting', 'off');
      if (s.readyState === EventSource.CLOSED) { streamless = Date.now() + streamAgain; connect(); }
    };
    watchdog(s);
  };
  const watchdog = (s) => {
    timer = setTimeout(() => {
      if (s !== source) return;
      const patience = shown ? silence : pollTime;
      if (Date.now() - heard > patience) { streamless = Date.now() + streamAgain; connect(); } else watchdog(s);
    }, 1000);
  };
  const poll = async () => {
    const mine = turn; // after disconnect the answer is not wanted: the sign-in form may be there by then
    try {
      const answer = await ask(view.job ? '/jobs/' + encodeURIComponent(view.job) : withQuery('/jobs', wanted()));
      if (mine !== turn) return;
      if (answer.status === 401) { showSignIn(); return; }
      if (answer.ok) { render(answer.body); wellLink('refreshed every 5 s'); }
      else { link('refused', 'off'); if (!shown || answer.status === 404 || answer.status === 400) wrong(answer.body.error); }
    } catch (err) {
      if (mine !== turn) return;
      link('no connection', 'off');
    }
    timer = setTimeout(connect, pollTime);
  };
  const ask = async (path, method = 'GET', body) => {
    const r = await fetch(api + path, { method, body: body && JSON.stringify(body), headers: body ? { 'Content-Type': 'application/json' } : {}, cache: 'no-store' });
    const text = await r.text();
    let parsed = {};
    try { parsed = text ? JSON.parse(text) : {}; } catch (err) { parsed = { error: 'The answer is not from Soloist: status ' + r.status }; }
    return { ok: r.ok, status: r.status, body: parsed };
  };
  document.addEventListener('visibilitychange', () => document.hidden ? disconnect() : $('signin').hidden && connect());

  // What changes is changed in place, so that focus and a reader's place stay.
  const sync = (parent, items, keyOf, make, update) => {
    const active = document.activeElement;
    const old = new Map();
    for (const node of parent.children) old.set(node.dataset.key, node);
    let place = parent.firstElementChild;
    for (const item of items) {
      const key = plain(keyOf(item));
      let node = old.get(key);
      if (!node) { node = make(item); node.dataset.key = key; }
      old.delete(key);
      if (node === place) place = place.nextElementSibling;
      else parent.insertBefore(node, place);
      update(node, item);
    }
    for (const node of old.values()) node.remove();
    if (active && active !== document.activeElement && parent.contains(active)) active.focus({ preventScroll: true });
  };
  const replace = (parent, text, ...children) => { // unless it would look the same
    if (parent.dataset.was === text) return;
    parent.dataset.was = text;
    parent.replaceChildren(...children.filter((c) => c !== null));
  };

  const tones = { succeeded: 'good', failed: 'bad', stalled: 'bad', abandoned: 'wait', missed: 'wait', cancelled: 'wait', skipped: 'none' };
  const timedOut = (j) => !!j.timesOut && Date.parse(j.timesOut) < now();
  const stateTone = (j) => j.trouble || timedOut(j) ? 'bad' : ({ armed: 'busy', running: 'busy', stopping: 'busy', interrupted: 'wait', waiting: 'wait', unknown: 'wait', 'no record': 'wait', paused: 'wait' })[j.state] || (resting(j) ? 'wait' : 'none');
  const resting = (j) => j.state === 'paused' || !!j.pause; // its ticks are skipped
  const skippedText = (j) => {
    const s = j.skipped, kept = (j.recent || []).filter((o) => o.status === 'skipped' && o.reason === 'paused'); // the record has those of a pause by settings
    const n = s ? s.count : kept.reduce((sum, o) => sum + (o.count || 1), 0);
    return n ? (s && s.more ? 'more than ' : '') + counted(n, 'tick') + ' skipped' : 'no tick skipped yet';
  };
  const skippedTicks = (j) => j.skipped ? j.skipped.ticks : (j.recent || []).filter((o) => o.status === 'skipped' && o.reason === 'paused' && o.at).slice(0, 10).map((o) => o.at);
  const stateText = (j) => j.state === 'failing' ? 'failing ×' + j.failures : j.state + (j.failures ? ', failing ×' + j.failures : '');

  const stateNodes = (j, brief) => [
    el('span', { class: 'state tone-' + stateTone(j) }, stateText(j)),
    j.here ? ' here' : null,
    (j.replica || j.claimed) && !brief ? el('small', {}, j.replica ? 'on ' + j.replica + (j.attempt > 1 ? ', attempt ' + j.attempt : '') + ', ' : null,
      ...(j.claimed ? [timed(j.lost || j.claimed, 'since'), j.tick ? ', tick ' + stamp(j.tick) : null] : []),
      ...(j.progress ? [', ' + (j.progress.note || 'heartbeat') + ', ', timed(j.progress.at, 'ago')] : [])) : null,
    timedOut(j) ? el('small', { class: 'tone-bad' }, timed(j.timesOut, 'over')) : null,
    j.begins ? el('small', {}, 'begins ' + stamp(j.begins)) : null,
    j.over ? el('small', {}, 'over since ' + stamp(j.over)) : null,
    j.waits ? el('small', {}, 'after unlock, until about ' + stamp(j.waits)) : null,
    j.pause ? el('small', {}, 'paused by ' + (j.pause.by || 'itself') + (j.pause.reason ? ': ' + j.pause.reason : '') + ', ', timed(j.pause.at, 'ago'), j.pause.until ? ', until ' + stamp(j.pause.until) : '') : null,
    resting(j) && !j.everyReplica && j.kind === 'job' ? el('small', { class: 'tone-wait' }, skippedText(j)) : null,
    j.ordered ? el('small', {}, counted(j.ordered, 'run') + ' ordered') : null,
    j.late ? el('small', { class: 'tone-bad' }, 'late since ' + stamp(j.late.since) + (j.late.count > 1 ? ' with ' + j.late.count + ' ticks' : '')) : null,
    j.error ? el('small', { class: 'tone-bad' }, j.error) : null,
    ...(j.differs || []).map((text) => el('small', {}, text)),
  ];
  const stateKey = (j) => JSON.stringify([j.state, j.failures, j.here, j.replica, j.attempt, j.claimed, j.lost, j.tick, timedOut(j), j.progress, j.begins, j.over, j.waits, j.pause,
    j.ordered, j.late, j.error, j.differs, resting(j) && skippedText(j)]);
  const outcomeText = (o, brief) => (o.count > 1 ? o.count + ' ' : '') + o.status + (o.seconds ? ' in ' + took(o.seconds) : '') + (o.reason && !brief ? ' (' + o.reason + ')' : '');
  const strip = (recent) => {
    const counts = {};
    for (const o of recent) counts[o.status] = (counts[o.status] || 0) + 1;
    const words = Object.entries(counts).map(([status, n]) => n + ' ' + status).join(', ');
    const bars = recent.slice().reverse().map((o) => el('i', { class: tones[o.status] || 'none', title: (o.at ? stamp(o.at) + ' ' : '') + outcomeText(o) }));
    return el('span', { class: 'strip', role: 'img', 'aria-label': 'newest last: ' + words }, ...bars);
  };
  const bars = (recent, width, height) => {
    const runs = recent.filter((o) => o.seconds > 0).reverse();
    if (!runs.length) return null;
    const most = Math.max(...runs.map((o) => o.seconds)), step = Math.min(width / runs.length, width / 8);
    const all = runs.map((o, i) => {
      const h = Math.max(1, o.seconds / most * height);
      return el('<rect', { class: tones[o.status] || 'none', x: (i * step).toFixed(1), y: (height - h).toFixed(1), width: Math.max(1, step - 2).toFixed(1), height: h.toFixed(1) },
        el('<title', {}, stamp(o.at) + ' ' + outcomeText(o)));
    });
    return { runs, most, all };
  };
  const spark = (recent) => {
    const made = bars(recent, 96, 22);
    if (!made) return [el('span', { class: 'tone-none' }, '–')];
    return [el('<svg', { width: 96, height: 22, viewBox: '0 0 96 22', 'aria-hidden': 'true' }, ...made.all), el('small', {}, took(made.runs[made.runs.length - 1].seconds))];
  };
  const plot = (recent) => {
    const made = bars(recent, 560, 110);
    if (!made) return [el('p', { class: 'help' }, 'No run has ended yet.')];
    const sorted = made.runs.map((o) => o.seconds).sort((a, b) => a - b);
    const label = counted(made.runs.length, 'run') + ': shortest ' + took(sorted[0]) + ', median ' + took(sorted[sorted.length >> 1]) + ', longest ' + took(made.most);
    return [el('<svg', { width: 640, height: 140, viewBox: '0 0 640 140', role: 'img', 'aria-label': label },
      el('<line', { x1: 0, x2: 560, y1: 10, y2: 10 }), el('<line', { x1: 0, x2: 560, y1: 120, y2: 120 }),
      el('<g', { transform: 'translate(0 10)' }, ...made.all), el('<text', { x: 568, y: 14 }, took(made.most)), el('<text', { x: 568, y: 124 }, '0')),
    el('p', { class: 'help' }, label)];
  };

  // The app, above all.
  const renderApp = (a) => {
    ahead = Date.now() - Date.parse(a.time);
    ill = a.storage ? farStore : a.note ? 'not the latest news' : '';
    set($('home'), a.name);
    set($('facts'), counted(a.jobs, 'job') + (a.trouble ? ', ' + a.trouble + ' in trouble' : '') + ' · replica ' + a.replica + ' · ' + a.store);
    set($('version'), [a.version, a.revision].filter(Boolean).join(', '));
    const notes = [a.note, a.storage && 'The store is out of reach: ' + a.storage, a.clock, a.orders && 'The orders of operators cannot be read, so nothing starts: ' + a.orders, a.log && 'On this replica ' + a.log,
      ...(a.stuck || []).map((job) => job + ' is stuck on this replica: only a restart helps'),
      ...Object.entries(a.overrun || {}).map(([job, why]) => job + ' goes on though its context has ended (' + why + '): only a restart helps'),
      ...(a.functions || []), ...(a.differs || [])].filter(Boolean);
    sync($('notes'), notes, (text) => text, (text) => el('li', {}, text), () => {});
    renderFleet(a);
    $('enter').hidden = a.signedIn || a.changes !== 'no';
    $('leave').hidden = !a.signedIn;
  };

  // The replicas, by what each has written of itself last.
  const replicaTone = (r) => r.state === 'silent' || r.state === 'lost' ? 'wait' : r.state === 'up' && r.health !== 'ok' ? 'bad' : r.state === 'up' ? 'good' : 'none';
  const clock = (skew) => Math.abs(skew) < 0.05 ? '–' : Math.abs(skew).toFixed(1) + ' s ' + (skew > 0 ? 'ahead' : 'behind');
  const goneAfter = 3600e3;
  const isGone = (r) => r.state === 'left' && (!r.seen || Date.parse(r.seen) < now() - goneAfter);
  const renderFleet = (a) => {
    const there = a.replicas.filter((r) => !isGone(r)), gone = a.replicas.filter(isGone);
    sync($('replicas').tBodies[0], there, (r) => JSON.stringify(r), (r) => el('tr', {}, el('th', { scope: 'row' }, r.replica + (r.replica === a.replica ? ' (this page)' : '')),
      el('td', {}, el('span', { class: 'tone-' + replicaTone(r) }, r.state + (r.state === 'up' && r.health !== 'ok' ? ', ' + r.health : '')),
        r.seen ? el('small', {}, 'seen ', timed(r.seen, 'ago')) : null, ...(r.state === 'up' ? r.reasons || [] : []).map((text) => el('small', {}, text))),
      el('td', {}, [r.version, r.revision].filter(Boolean).join(', ') || '–'), el('td', {}, r.platform || '–'), el('td', {}, stamp(r.started)), el('td', {}, clock(r.skew))), () => {});
    set($('fleet-more'), a.moreReplicas ? 'and ' + a.moreReplicas + ' more' : '');
    $('gone').hidden = !gone.length;
    set($('gone').firstElementChild, counted(gone.length, 'replica') + ' that left more than an hour ago');
    sync($('gone').lastElementChild, gone, (r) => JSON.stringify(r), (r) => el('li', {}, r.replica, ' ', el('span', { class: 'help' }, 'seen ', r.seen ? timed(r.seen, 'ago') : 'never',
      r.version ? ', ' + r.version : '', ', started ' + stamp(r.started))), () => {});
  };

  // The locks, and what is done once. To read them is a listing, so they are asked for seldom, while the list is shown.
  const locksTime = 15000;
  let locked = null, lockedAt = 0;
  const holders = (l) => (l.holders || []).slice(0, 3).map((h) => el('small', {}, h.replica || 'not claimed yet', h.since ? ', ' : null, h.since ? timed(h.since, 'since') : null));
  const onceTone = (o) => ({ succeeded: 'good', running: 'busy', failed: 'bad', interrupted: 'wait' })[o.state] || 'none';
  const renderLocks = (d) => {
    sync($('locks').tBodies[0], d.locks, (l) => JSON.stringify(l), (l) => el('tr', {}, el('th', { scope: 'row' }, l.name, l.kind === 'lock' ? null : el('small', {}, l.kind)),
      el('td', {}, el('span', { class: 'tone-' + (l.held ? 'busy' : 'none') }, l.held + ' of ' + l.slots)),
      el('td', {}, ...holders(l), l.held > 3 ? el('small', {}, 'and ' + (l.held - 3) + ' more') : null, l.error ? el('small', {}, l.error) : null, l.held || l.error ? null : '–'),
      el('td', {}, l.token ? String(l.token) : '–'), el('td', {}, l.used ? timed(l.used, 'ago') : '–')), () => {});
    sync($('once').tBodies[0], d.once, (o) => JSON.stringify(o), (o) => el('tr', {}, el('th', { scope: 'row' }, o.name), el('td', {}, o.key || '–'),
      el('td', {}, el('span', { class: 'tone-' + onceTone(o) }, o.state || 'broken', o.failures && o.state !== 'succeeded' ? ' ×' + o.failures : null),
        o.at ? el('small', {}, timed(o.at, 'ago')) : null, o.reason ? el('small', {}, o.reason) : null, o.error ? el('small', {}, o.error) : null),
      el('td', {}, o.replica || '–')), () => {});
    $('locks-part').hidden = !d.locks.length;
    $('once-part').hidden = !d.once.length;
    set($('locks-more'), d.moreLocks ? 'and ' + d.moreLocks + ' more: the command status --locks has all' : '');
    set($('once-more'), d.moreOnce ? 'and ' + d.moreOnce + ' more: the command status --locks has all' : '');
    set($('locks-note'), d.locksNote || '');
  };
  const askLocks = async () => {
    if (document.hidden || !shown || !shown.jobs || view.of || Date.now() - lockedAt < locksTime) return;
    lockedAt = Date.now();
    try {
      const answer = await ask('/locks');
      if (!answer.ok) return;
      renderLocks(locked = answer.body);
      $('locked').hidden = $('list').hidden || !hasLocks();
    } catch (err) { return; }
  };
  const hasLocks = () => locked && (locked.locks.length || locked.once.length || locked.locksNote);
  setInterval(askLocks, 1000);

  // The list.
  const makeRow = (j) => {
    const cell = (label) => el('td', { role: 'cell', 'data-label': label });
    return el('tr', { role: 'row' }, el('th', { role: 'rowheader', scope: 'row' }, el('a', { href: jobPath(j.job), 'data-local': '' }, j.job), el('small')),
      cell('State'), cell('Last outcomes'), cell('Durations'), cell('Next tick'));
  };
  const busy = (j) => ['running', 'stopping', 'armed'].includes(j.state);
  const calm = (j) => !j.trouble && !timedOut(j) && !resting(j) && !j.parts && !['bad', 'wait'].includes(tones[(j.recent[0] || {}).status]) && (busy(j) || ['idle', 'over', 'each replica'].includes(j.state)); // two lines are enough
  const partsText = (j) => Object.entries(j.parts).map(([state, n]) => n + ' ' + state).sort().join(', ');
  const updateRow = (tr, j) => {
    const [name, state, last, durations, next] = tr.children, whole = j.parts && j.shard;
    tr.className = [j.trouble ? 'trouble' : calm(j) ? 'calm' : resting(j) ? 'paused' : '', busy(j) ? 'busy' : ''].join(' ').trim();
    set(name.firstChild, whole ? j.shard.whole : j.job);
    attr(name.firstChild, 'href', whole ? shardsPath(j.shard.whole) : jobPath(j.job));
    set(name.lastChild, (j.kind === 'singleton' ? 'singleton: one replica runs it all the time' : j.schedule || '') + (whole ? ', ' + counted(j.shard.of, 'shard') : ''));
    const recent = JSON.stringify(j.recent), newest = j.recent[0], why = newest && j.failures && bad(newest) ? newest.reason : ''; // the wide column has it
    replace(state, stateKey(j) + why + (whole ? JSON.stringify(j.parts) : ''), ...(whole ? [el('span', { class: 'state tone-' + stateTone(j) }, partsText(j))] : stateNodes(j, !!why && !timedOut(j))), // a row stays as high as it is while the job is tried again
      why ? el('small', { class: 'tone-bad' }, why) : null);
    replace(last, recent + !!why, newest ? strip(j.recent) : null, newest ? el('small', {}, outcomeText(newest, why) + ', ', newest.at ? timed(newest.at, 'ago') : '') : el('span', { class: 'tone-none' }, '–'));
    replace(durations, recent, ...spark(j.recent));
    replace(next, (j.next || '') + (j.awaits || '') + resting(j), ...nextNodes(j));
  };
  const nextNodes = (j) => !j.next ? [el('span', { class: 'tone-none' }, '–')] : resting(j) ? [el('span', { class: 'tone-wait' }, 'paused')] :
    [timed(j.next, 'next'), el('small', {}, stamp(j.next) + awaits(j))];

  // How many jobs there are of what an operator looks for first. A tap shows only those, another one all.
  const looks = { failing: 'failing', running: 'running', late: 'late', paused: 'paused', due: 'due in 1h' };
  const lookTones = { failing: 'bad', late: 'bad', paused: 'wait', running: 'busy' };
  const renderLooks = (a) => sync($('looks'), Object.keys(looks), (key) => key, (key) => {
    const button = el('button', { type: 'button', class: 'look' }, el('strong'), el('span', {}, looks[key]));
    button.addEventListener('click', () => refine({ is: view.is === key ? '' : key }));
    return button;
  }, (button, key) => {
    const n = (a.looks || {})[key] || 0;
    set(button.firstChild, String(n));
    button.firstChild.className = n ? 'tone-' + (lookTones[key] || 'plain') : 'tone-none';
    attr(button, 'aria-pressed', String(view.is === key));
  });
  const renderList = (d) => {
    const shownRows = d.jobs.length, last = d.offset + shownRows;
    renderLooks(d.app);
    sync($('rows'), d.jobs, (j) => j.parts ? j.shard.whole : j.job, makeRow, updateRow);
    set($('count'), view.q || view.trouble || view.is ? d.matched + ' of ' + counted(d.app.jobs, 'job') : '');
    $('empty').hidden = shownRows > 0;
    set($('empty'), d.app.note || (d.app.jobs ? 'No job matches.' : 'This program has no jobs.'));
    $('pager').hidden = d.matched <= shownRows && d.offset === 0;
    set($('range'), shownRows ? d.offset + 1 + ' to ' + last + ' of ' + d.matched : '');
    $('previous').disabled = d.offset === 0;
    $('next').disabled = last >= d.matched;
    for (const button of document.querySelectorAll('[data-sort]')) {
      const key = view.sort.replace(/^-/, '');
      attr(button.closest('th'), 'aria-sort', key !== button.dataset.sort ? null : view.sort[0] === '-' ? 'descending' : 'ascending');
    }
    if (document.activeElement !== $('q')) $('q').value = view.q;
    $('trouble').checked = view.trouble;
    lanes.follow(view);
  };
  const lanes = makeStrip({ $, el, attr, set, plain, now, stamp, ask, sync, jobPath, go, counted, say: (text) => say(text) });
  const refine = (change) => { clearTimeout(typing); Object.assign(view, { offset: 0, q: $('q').value.trim() }, change); history.replaceState(null, '', withQuery(base, query())); connect(); };
  let typing = 0;
  $('q').addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(() => refine({}), 250); });
  $('filter').addEventListener('submit', (e) => { e.preventDefault(); refine({}); });
  $('trouble').addEventListener('change', () => refine({ trouble: $('trouble').checked }));
  for (const button of document.querySelectorAll('[data-sort]')) {
    button.addEventListener('click', () => refine({ sort: view.sort === button.dataset.sort ? '-' + view.sort : button.dataset.sort }));
  }
  $('previous').addEventListener('click', () => refine({ offset: Math.max(0, view.offset - 100) }));
  $('next').addEventListener('click', () => refine({ offset: view.offset + 100 }));

  // Why an operator looks at a job: its error first, then what else is known of it.
  const textLine = (text) => [...text].map((c) => c === '\n' ? c : plain(c)).join('');
  const errorText = (text) => { const pre = el('pre', { class: 'what' }); pre.textContent = textLine(text); return pre; };
  const listed = (...pairs) => el('dl', { class: 'facts-list' }, ...pairs.filter((p) => p[1]).flatMap(([name, ...value]) => [el('dt', {}, name), el('dd', {}, ...value)]));
  const triesOf = (j) => { const set = (j.settings || []).find((x) => x.name === 'Retry.MaxTries'); return set ? 'up to ' + set.value + ' for each tick' : 'one for each tick'; };
  const causes = (j, a) => {
    const all = [], f = j.failing, replica = (name) => (a.replicas || []).find((r) => r.replica === name);
    if (f) {
      all.push(['bad', 'The last run ' + (f.status === 'stalled' ? 'has stalled' : 'has failed'), errorText(f.error || f.status),
        listed(['Failing since', stamp(f.since) + (f.before ? ' or before, ' : ', '), timed(f.since, 'ago')],
          ['Last success', ...(f.succeeded ? [stamp(f.succeeded) + ', ', timed(f.succeeded, 'ago')] : ['none'])],
          ['Failures', j.failures + ' in a row'], ['Tries', triesOf(j) + (f.attempt > 1 ? ', attempt ' + f.attempt : '')],
          ['Replicas', f.replicas.map((name) => name + (replica(name) ? ' (' + replica(name).state + ')' : '')).join(', ') || '–'],
          ['Last run', f.run ? runLink(f.run, 'all that is known of it') : ''])]);
    }
    if (timedOut(j)) {
      all.push(['bad', 'The run goes on after its time-out', listed(['Since', timed(j.timesOut, 'over')], ['Replica', j.replica || '–'], ['Run', j.run ? runLink(j.run, 'all that is known of it') : '']),
        el('p', {}, 'Its work ignores its context, or waits. Unlock lets another replica go on; only a restart of this one ends the work.')]);
    }
    if (j.state === 'stalled' && !f) all.push(['bad', 'The run was given up, and is not known to have ended', listed(['Replica', j.replica || '–'])]);
    if (j.error) all.push(['bad', j.state === 'unknown' ? 'The store does not answer' : 'Nothing of it runs', errorText(j.error)]);
    if (j.late) {
      all.push(['bad', 'Late', listed(['Late since', stamp(j.late.since) + ', ', timed(j.late.since, 'ago')], ['Ticks', counted(j.late.count, 'tick') + ' without a success in time, the newest ' + stamp(j.late.tick)],
        ['Now', ...(j.run && j.claimed ? [j.state + (j.replica ? ' on ' + j.replica : '') + ' ', timed(j.claimed, 'since'), ', ', runLink(j.run, 'the run')] : [''])])]);
    }
    if (j.state === 'interrupted') {
      const r = replica(j.runner);
      all.push(['wait', 'The replica of the run is gone', listed(['Replica', (j.runner || '–') + (r ? ' (' + r.state + ')' : '')], ['Last sign', ...(j.lost ? [timed(j.lost, 'ago')] : ['–'])],
        ['Run', j.run ? runLink(j.run, 'all that is known of it') : '']), el('p', {}, 'Another replica settles it, if one is up.')]);
    }
    if (resting(j)) {
      const p = j.pause, ticks = skippedTicks(j);
      all.push(['wait', p ? 'Paused by ' + (p.by || 'itself') : 'Paused by the settings of replicas', p && p.reason ? errorText(p.reason) : null,
        listed(...(p ? [['Since', stamp(p.at) + ', ', timed(p.at, 'ago')], ['Until', p.until ? stamp(p.until) : 'it is resumed']] : []),
          ['Skipped', ...(j.everyReplica || j.kind !== 'job' ? [''] : [skippedText(j) + (ticks.length ? ', the last at ' : ''),
            ...ticks.slice(0, 5).flatMap((at, i) => [i ? ', ' : '', el('time', { datetime: at }, stamp(at))])])])]);
    }
    return all;
  };
  const renderCause = (d) => {
    const j = d.job, all = causes(j, d.app);
    $('cause').hidden = !all.length;
    replace($('cause'), JSON.stringify([stateKey(j), j.failing, j.settings, j.run, (d.app.replicas || []).map((r) => [r.replica, r.state]), all.length]),
      ...all.map(([tone, title, ...nodes]) => el('div', { class: 'cause ' + tone }, el('h2', {}, title), ...nodes)));
  };

  // What has become of the last orders, where they were given.
  const answerTime = 15 * 60e3;
  const orderNames = { run: 'Run', pause: 'Pause', resume: 'Resume', cancel: 'Cancellation', 'step-down': 'Step-down', backfill: 'Backfill', 'cancel-backfill': 'End of the backfill' };
  let given = null; // the order that was given last, which may not be in the news yet
  const answerNodes = (o, j) => [el('strong', {}, orderNames[o.kind] || o.kind), ' ordered by ' + o.by + ', ', timed(o.at, 'ago'), ...orderState(o, j)];
  const orderState = (o, j) => {
    if (o.kind === 'run' && o.state === 'waiting') return [': ', el('span', { class: 'tone-wait' }, 'waiting for a replica')];
    if (o.kind === 'run' && o.state === 'running') return [': ', el('span', { class: 'tone-busy' }, 'running' + (j.replica ? ' on ' + j.replica : '')), ', ', runLink(o.run, 'the run')];
    if (o.kind === 'run') return [': ', el('span', { class: 'tone-' + (tones[o.state] || 'none') }, o.state || 'over'), ', ', runLink(o.run, 'the run')];
    if (o.kind === 'backfill' && j.backfill) return [': ' + j.backfill.state + ', ' + j.backfill.done + ' of ' + counted(j.backfill.ticks, 'tick')];
    return [];
  };
  const renderAnswers = (j) => {
    const fresh = given && given.job === j.job && !j.orders.some((o) => o.id === given.id) ? [{ state: given.kind === 'run' ? 'waiting' : '', ...given }] : [];
    const all = [...fresh, ...j.orders].filter((o) => o.state === 'waiting' || o.state === 'running' || now() - Date.parse(o.at) < answerTime).slice(0, 3);
    $('answers').hidden = !all.length;
    sync($('answers'), all, (o) => o.id, () => el('li'), (li, o) => replace(li, JSON.stringify([o.state, o.state === 'running' && j.replica, o.kind === 'backfill' && j.backfill]), ...answerNodes(o, j)));
  };

  // The shards of one job: a cell for each.
  const renderShards = (d) => {
    const all = d.jobs.filter((j) => j.shard).sort((a, b) => a.shard.index - b.shard.index), counts = {};
    for (const j of all) counts[stateText(j)] = (counts[stateText(j)] || 0) + 1;
    set($('shards-title'), view.of);
    set($('shards-facts'), all.length ? counted(all.length, 'shard') + ': ' + Object.entries(counts).map(([state, n]) => n + ' ' + state).join(', ') + (all[0].schedule ? ' · ' + all[0].schedule : '') :
      d.app.note || 'No job or singleton of this name has shards.');
    sync($('cells'), all, (j) => j.job, (j) => el('li', {}, el('a', { href: jobPath(j.job), 'data-local': '' })), (li, j) => {
      li.firstChild.className = 'cell-' + stateTone(j);
      replace(li.firstChild, stateKey(j) + (j.recent[0] || {}).status, el('strong', {}, String(j.shard.index)), el('span', {}, stateText(j)), el('small', {}, j.replica ? 'on ' + j.replica : (j.recent[0] || {}).status || '–'));
    });
  };

  // One run: what the record has of it, and the log.
  const single = { run: '', asked: 0, got: null };
  const settled = 120e3; // by then all that is known of a run is in the log
  const renderRun = (d) => {
    const j = d.job, known = j.history.filter((f) => f.id === view.run), order = j.orders.find((o) => o.run === view.run);
    if (single.run !== view.run) Object.assign(single, { run: view.run, asked: 0, got: null });
    const all = single.got && single.got.length >= known.length ? single.got : known, live = j.run === view.run;
    set($('run-title'), 'Run ' + view.run);
    set($('run-job'), j.job);
    attr($('run-job'), 'href', jobPath(j.job));
    replace($('run-now'), live + stateKey(j), ...(live ? stateNodes(j) : []));
    const waits = order && order.state === 'waiting';
    set($('run-facts'), (order ? 'Ordered by ' + order.by + ' at ' + stamp(order.at) + (order.reason ? ': ' + order.reason : '') + '. ' : '') + (waits ? 'It waits for a replica.' :
      all.length || live ? '' : 'Nothing is known of it: it has not begun, or the record and the log have it no more.'));
    sync($('attempts'), all, (f) => JSON.stringify([f.token, f.status, f.end, !!f.detail]), (f) => attemptOf(j, f), () => {});
    const last = all[0], fresh = live || waits || !last || now() - Date.parse(last.end || last.start || last.tick) < settled;
    if (!single.asked || fresh && Date.now() - single.asked > pastPace) askRun(j.job);
  };
  setInterval(() => { if (!document.hidden && view.run && shown && shown.job) renderRun(shown); }, 1000);
  const bad = (f) => ['failed', 'stalled', 'abandoned'].includes(f.status);
  const attemptOf = (j, f) => {
    const words = f.status + (f.attempt > 1 ? ', attempt ' + f.attempt : ''), tone = { good: 'good', bad: 'bad', wait: 'wait' }[tones[f.status]] || 'none';
    return el('div', { class: 'cause ' + tone }, el('h2', {}, words), f.reason ? errorText(f.reason) : null,
      listed(['Tick', f.tick ? span(f) : ''], ['Start', f.start ? stamp(f.start) : ''], ['End', f.end ? stamp(f.end) : ''], ['Took', f.start && f.end ? took(seconds(f)) : ''],
        ['Attempt', f.attempt ? String(f.attempt) : ''], ['Replica', f.replica || ''], ['Fencing token', f.token ? String(f.token) : ''], ['By hand', f.request || '']),
      f.detail ? el('h3', {}, 'All that is known of the failure') : null, f.detail ? errorText(f.detail) : null, notRun(f) ? whyOf(j.job, f.tick) : null);
  };
  const askRun = async (job) => {
    const run = single.run;
    single.asked = Date.now();
    try {
      const answer = await ask('/jobs/' + encodeURIComponent(job) + '/history?' + new URLSearchParams({ run }));
      if (single.run !== run || !answer.ok) return; // what the record has is shown
      single.got = answer.body.outcomes;
    } catch (err) { return; /* the stream tells that, too */ }
    if (shown && shown.job && view.run === run) renderRun(shown);
  };

  // One job.
  const fact = (name, ...value) => [el('dt', {}, name), el('dd', {}, ...value)];
  const renderJob = (d) => {
    const j = d.job, o = j.outlook;
    set($('job-title'), j.job);
    $('job-title').className = j.trouble ? 'trouble' : '';
    $('up').hidden = !j.shard;
    if (j.shard) { set($('up'), 'All ' + j.shard.of + ' shards of ' + j.shard.whole); attr($('up'), 'href', shardsPath(j.shard.whole)); }
    renderCause(d);
    renderAnswers(j);
    replace($('job-state'), stateKey(j), ...stateNodes(j));
    replace($('job-facts'), JSON.stringify([j.kind, j.schedule, o, j.next, resting(j), j.begins, j.over, j.awaits, j.backfill, j.counts, j.checkpoint, j.token, j.lease]),
      ...fact('Schedule', j.kind === 'singleton' ? 'always, on one replica' : j.schedule || '–'),
      ...(o ? [...fact('As cron', o.text), ...fact('Time zone', o.zone)] : []),
      ...(o && o.leftOut ? fact('Excluded days', o.leftOut.map((x) => x.day + ' ' + (x.movedTo ? 'moved to ' + x.movedTo : 'left out') + ', ' + (x.only ? 'no day of ' : 'a day of ') + x.by.join(', ')).join('; ')) : []),
      ...(j.begins ? fact('Begins', stamp(j.begins)) : []),
      ...(j.over ? fact('Over since', stamp(j.over)) : []),
      ...(o && o.warnings.length ? fact('Note', o.warnings.join('; ')) : []),
      ...(j.backfill ? fact('Backfill', backfilled(j.backfill)) : []),
      ...(j.next ? fact('Next tick', ...(resting(j) ? [stamp(j.next) + ', skipped if the job is paused then'] : [timed(j.next, 'next'), ', ' + stamp(j.next) + awaits(j)])) : []),
      ...fact('Outcomes', Object.entries(j.counts || {}).map(([status, n]) => n + ' ' + status).join(', ') || '–'),
      ...fact('Checkpoint', j.checkpoint ? j.checkpoint.toLocaleString('en') + ' bytes' : 'none'),
      ...(j.token ? fact('Fencing token', String(j.token)) : []),
      ...(j.lease ? fact('Lease', j.lease) : []));
    $('settings-title').hidden = !(j.settings || []).length;
    replace($('settings'), JSON.stringify(j.settings), ...(j.settings || []).flatMap((x) => fact(x.name, x.value === 'true' ? 'yes' : x.value)));
    renderPast(d);
    $('orders-title').hidden = $('orders').hidden = !j.orders.length;
    sync($('orders').tBodies[0], j.orders, (x) => x.id, (x) => el('tr', {}, el('td', {}, stamp(x.at)), el('td', {}, x.by), el('td', {}, x.run ? runLink(x.run, x.kind) : x.kind, x.until && x.kind === 'pause' ? ' until ' + stamp(x.until) : ''), el('td', {}, x.reason || '–')), () => {});
    $('ticks-title').hidden = !o;
    sync($('ticks'), o ? o.ticks : [], (t) => t.tick + resting(j), (t) => el('li', {}, el('time', { datetime: t.tick }, stamp(t.tick)), ' ', el('span', { class: 'help' },
      o.zone === 'UTC' ? '' : t.local.slice(0, 19).replace('T', ' ') + ' in ' + o.zone + ' ', ...(resting(j) ? [] : ['(', timed(t.tick, 'next'), ')']), t.clock ? ', ' + t.clock : '', t.movedFrom ? ', moved from ' + t.movedFrom : '')), () => {});
    const record = j.record ? JSON.stringify(j.record, null, 2).replace(hidden, (c) => c === '\n' ? c : plain(c)) : 'There is none.';
    if ($('record').textContent !== record) $('record').textContent = record;
    renderActions(d);
  };

  // The history: what the record has, or, where the program keeps a log, one page of that. It is asked for when something
  // new has ended, and not more often than every few seconds.
  const past = { job: null, since: '', outcome: '', offset: 0, key: '', asked: 0, timer: 0, got: null, choice: '', wrong: '' };
  const pastPace = 5000;
  const span = (f) => f.from ? 'after ' + stamp(f.from) + ' to ' + stamp(f.tick) + (f.count ? ' (' + (f.atLeast ? 'at least ' : '') + f.count + ')' : '') : f.tick ? stamp(f.tick) : '–';
  const whole = (f) => {
    const job = past.job, text = el('pre', {}), more = el('details', {}, el('summary', {}, 'all that is known'), text);
    more.addEventListener('toggle', async () => {
      if (!more.open || text.textContent) return;
      let answer = { body: { error: 'there is no connection: open it again' } };
      try { answer = await ask('/jobs/' + encodeURIComponent(job) + '/history?' + new URLSearchParams({ run: f.id })); } catch (err) { /* the text says so */ }
      const one = answer.ok && answer.body.outcomes.find((o) => o.token === f.token);
      if (one && one.detail) text.textContent = one.detail; // in which the program has escaped what is no text
      else { more.open = false; set(more.firstChild, answer.ok ? 'no more is known' : answer.body.error); }
    });
    return more;
  };
  const notRun = (f) => f.tick && !f.request && !f.token && ['missed', 'skipped'].includes(f.status);
  // Why a tick did not run: asked for each time that it is opened.
  const whyOf = (job, tick) => {
    const text = el('div', { role: 'status' }), box = el('details', {}, el('summary', {}, 'why'), text);
    box.addEventListener('toggle', async () => {
      if (!box.open) return;
      let lines = ['There is no connection.'];
      try {
        const { ok, body } = await ask('/jobs/' + encodeURIComponent(job) + '/why?' + new URLSearchParams({ at: tick }));
        lines = ok ? [body.sentence, ...body.known, ...body.notKnown.map((what) => 'Not known: ' + what)] : [body.error];
      } catch (err) { /* the stream tells that, too */ }
      text.replaceChildren(...lines.map((line) => el('small', {}, line)));
    });
    return box;
  };
  const makePast = (f) => f.lost ? el('tr', {}, el('td', { class: 'gap', colspan: 7 }, 'Outcomes before this may be lost.')) :
    el('tr', {}, el('td', {}, f.id ? runLink(f.id, span(f)) : span(f), f.request ? ', by hand: ' + f.request : ''),
      el('td', {}, el('span', { class: 'tone-' + (tones[f.status] || 'none') }, f.status), f.reason ? el('small', {}, f.reason) : null,
        notRun(f) ? whyOf(past.job, f.tick) : f.id && f.token && bad(f) ? whole(f) : null), el('td', {}, f.attempt ? String(f.attempt) : '–'), el('td', {}, f.replica || '–'),
      el('td', {}, f.start ? stamp(f.start) : '–'), el('td', {}, f.start && f.end ? took(seconds(f)) : '–'), el('td', {}, f.token ? String(f.token) : '–'));
  const seconds = (f) => f.start && f.end ? Math.max(0, Date.parse(f.end) - Date.parse(f.start)) / 1000 : 0;
  const renderPast = (d) => {
    if (past.job !== d.job.job) Object.assign(past, { job: d.job.job, since: '', outcome: '', offset: 0, key: '', asked: 0, got: null, wrong: '' });
    const got = d.log ? past.got : null, chosen = past.since || past.outcome || past.offset;
    const all = got ? got.outcomes : d.log && chosen ? [] : d.job.history; // those of the record are not filtered
    const runs = got ? all.map((f) => ({ at: f.end || f.start || f.tick, status: f.status, seconds: seconds(f), reason: f.reason, count: f.from ? f.count : 0 })) : d.job.recent;
    replace($('plot'), JSON.stringify(runs), ...plot(runs));
    sync($('history').tBodies[0], all.flatMap((f) => f.gap ? [f, { lost: f.tick || f.start, token: f.token }] : [f]), (f) => JSON.stringify(f), makePast, () => {});
    $('past').hidden = !d.log;
    $('since').value = past.since;
    $('outcome').value = past.outcome;
    set($('past-count'), !got ? '' : got.matched ? got.offset + 1 + ' to ' + (got.offset + all.length) + ' of ' + got.matched : 'none');
    const note = d.job.everyReplica ? '' : !d.log ? 'These are the last outcomes. More are kept unless SOLOIST_HISTORY is 0.' : past.wrong || got && got.note || '';
    $('past-note').hidden = !note;
    set($('past-note'), note);
    $('past-pager').hidden = !got || got.matched <= all.length && !got.offset;
    $('newer').disabled = !got || !got.offset;
    $('older').disabled = !got || got.offset + all.length >= got.matched;
    const newest = d.job.history[0];
    const key = JSON.stringify([past.job, past.since, past.outcome, past.offset, newest && [newest.token, newest.tick, newest.status, newest.end]]);
    if (!d.log || key === past.key) return;
    clearTimeout(past.timer);
    past.timer = setTimeout(() => askPast(key), Math.max(0, past.asked + pastPace - Date.now()));
  };
  const askPast = async (key) => {
    const { job, since, outcome, offset } = past, query = new URLSearchParams({ offset });
    if (document.hidden || view.job !== job) return;
    if (since) query.set('since', since);
    if (outcome) query.set('outcome', outcome);
    past.key = key;
    past.asked = Date.now();
    let answer = { body: { error: 'there is no connection' } };
    try { answer = await ask('/jobs/' + encodeURIComponent(job) + '/history?' + query); } catch (err) { /* the stream tells that, too */ }
    if (past.job !== job || past.since !== since || past.outcome !== outcome || past.offset !== offset) return;
    const choice = JSON.stringify([since, outcome, offset]);
    past.wrong = '';
    if (answer.ok) Object.assign(past, { got: answer.body, choice });
    else {
      Object.assign(past, { key: '', wrong: 'The history cannot be shown, and is asked for again: ' + answer.body.error });
      if (past.choice !== choice) past.got = null; // it is of another choice
    }
    if (shown && shown.job) renderPast(shown);
  };
  const wantPast = (change) => {
    Object.assign(past, { offset: 0 }, change, { asked: 0 });
    if (shown && shown.job) renderPast(shown);
  };
  $('past').addEventListener('submit', (e) => e.preventDefault());
  $('since').addEventListener('change', () => wantPast({ since: $('since').value }));
  $('outcome').addEventListener('change', () => wantPast({ outcome: $('outcome').value }));
  $('newer').addEventListener('click', () => wantPast({ offset: Math.max(0, past.offset - 100) }));
  $('older').addEventListener('click', () => wantPast({ offset: past.offset + 100 }));

  // Changes. Each says what it risks before it is made.
  const why = { name: 'reason', label: 'Reason (it is shown with the change)' };
  const runs = (j) => ['running', 'stopping', 'stalled', 'interrupted'].includes(j.state);
  const actions = [
    { key: 'run', label: 'Run now', when: (j) => j.kind === 'job', fields: [why], risk: 'One run beside the ticks, on whichever replica is first. If the job runs already, it is skipped, unless missed ticks of the job are all run. Its effects come once more.' },
    { key: 'pause', label: 'Pause', when: (j) => !j.pause, everywhere: true, fields: [why, { name: 'until', label: 'Until (empty: until it is resumed)', example: '2h, 3d or 2026-12-24T08:00Z' }],
      risk: 'Nothing of the job starts any more, 8 s from now at the latest. Ticks are skipped, and are not made up for. A run under way goes on.' },
    { key: 'resume', label: 'Resume', when: (j) => j.pause, everywhere: true, fields: [why], risk: 'The job runs again from its next tick on. Ticks of the pause stay skipped.' },
    { key: 'cancel', label: 'Cancel the run', when: runs, danger: true, fields: [why], risk: 'The context of the run ends, and its tick is not run again. What it has done so far stays done. A run that ignores its context goes on.' },
    { key: 'backfill', label: 'Run ticks again', when: (j) => j.kind === 'job' && !(j.backfill && ['waiting', 'running'].includes(j.backfill.state)), plan: true,
      fields: [{ name: 'from', label: 'From', example: '24h, 7d or 2026-12-24T08:00Z', time: true, required: true }, { name: 'to', label: 'To (empty: now)', example: '2026-12-24T09:00Z', time: true },
        { name: 'all', label: 'All ticks, also those that have succeeded', type: 'checkbox' }, { name: 'parallel', label: 'At a time (empty: one)', type: 'number' }, why],
      risk: 'Ticks of the past are run again, in their order: those that were missed, or all. Their effects come once more. Preview them first.' },
    { key: 'cancel-backfill', label: 'Cancel the backfill', when: (j) => j.backfill && ['waiting', 'running'].includes(j.backfill.state), danger: true, fields: [why], risk: 'No further tick of it is run, and the context of its run ends. What was run stays done.' },
    { key: 'step-down', label: 'Step down', when: runs, fields: [why], risk: 'The run ends, as at a stop of its replica, and another replica may run its tick again. A job that keeps no checkpoint loses its work so far.' },
    { key: 'unlock', label: 'Unlock', when: (j) => j.lease === 'leased' || j.lease === 'breaking', danger: true, risk: 'For a holder that hangs: its lease ends when it expires, and another replica follows after that. A holder that is well loses its run, and its process may be ended.' },
  ];
  const spans = { s: 1e3, m: 6e4, h: 36e5, d: 864e5 };
  const spanForm = /^(?:\d+(?:\.\d+)?\s*[smhd]\s*)+$/;
  const dateForm = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d))?$/;
  const dayOf = (at) => new Date(at || 0).toISOString().slice(0, 10);
  const instant = (text, what, sign) => { // a span from now on or ago, a date in UTC, or a time with its zone: the browser's zone is none of the page's
    const day = text.slice(0, 10);
    let at = NaN;
    if (spanForm.test(text)) at = [...text.matchAll(/([\d.]+)\s*([smhd])/g)].reduce((sum, [, n, unit]) => sum + sign * n * spans[unit], now());
    else if (dateForm.test(text) && dayOf(Date.parse(day)) === day) at = Date.parse(text.replace(' ', 'T')); // some browsers take a 30th of February
    if (Number.isNaN(new Date(at).getTime())) throw new Error(what + ' is ' + text + ': want a span such as 2h or 3d, a date, or a time with its zone such as 2026-12-24T08:00Z');
    return new Date(at).toISOString();
  };
  const renderActions = (d) => {
    const j = d.job, may = d.app.changes === 'yes', possible = actions.filter((a) => (a.everywhere || !j.everyReplica) && a.when(j));
    $('actions').hidden = !possible.length;
    sync($('actions'), possible, (a) => a.key, (a) => {
      const button = el('button', { type: 'button', class: a.danger ? 'danger' : 'quiet' }, a.label + ' …');
      button.addEventListener('click', () => confirm(a, view.job));
      return button;
    }, (button) => { button.disabled = !may; attr(button, 'aria-describedby', may ? null : 'how'); });
    $('how').hidden = may;
    set($('how'), d.app.howTo || '');
  };
  let asking = null;
  const labelled = (f) => {
    const input = el('input', { name: f.name, type: f.type || 'text', autocomplete: 'off', required: f.required ? '' : null, maxlength: f.type ? null : 100, min: f.type === 'number' ? 1 : null,
      max: f.type === 'number' ? 16 : null, placeholder: f.example || null });
    return f.type === 'checkbox' ? el('label', { class: 'check' }, input, f.label) : el('label', {}, f.label, input);
  };
  const confirm = (action, job) => {
    asking = { action, job };
    set($('ask-title'), action.label + ': ' + job);
    set($('ask-risk'), action.risk);
    set($('ask-error'), '');
    $('ask-yes').disabled = false;
    $('ask-yes').className = action.danger ? 'danger' : '';
    $('ask-fields').replaceChildren(...(action.fields || []).map(labelled));
    unplanned();
    $('ask').showModal();
  };
  const unplanned = () => { // a plan is only of what was asked for then
    if (!asking) return;
    asking.planned = false;
    set($('ask-plan'), '');
    set($('ask-yes'), asking.action.plan ? 'Preview' : asking.action.label);
  };
  $('ask-fields').addEventListener('input', unplanned);
  $('ask-no').addEventListener('click', () => $('ask').close());
  const valuesOf = (action) => {
    const body = {};
    for (const f of action.fields || []) {
      const input = $('ask-fields').querySelector('[name="' + f.name + '"]'), value = input.value.trim();
      if (f.type === 'checkbox') { if (input.checked) body[f.name] = true; }
      else if (f.type === 'number') { if (value) body[f.name] = +value; }
      else if (f.name === 'until') { if (value) body.until = instant(value, 'Until', 1); }
      else if (f.time) { if (value) body[f.name] = instant(value, f.label.split(' ')[0], -1); }
      else if (value) body[f.name] = value;
    }
    return body;
  };
  $('ask-form').addEventListener('submit', async (e) => {
    e.preventDefault();
    const { action, job, planned } = asking;
    let body;
    set($('ask-error'), '');
    try { body = planned || valuesOf(action); } catch (err) { set($('ask-error'), err.message); return; }
    const preview = action.plan && !planned;
    $('ask-yes').disabled = true;
    try {
      const answer = await ask('/jobs/' + encodeURIComponent(job) + '/' + action.key, 'POST', preview ? { ...body, dryRun: true } : body);
      if (!answer.ok) { set($('ask-error'), answer.body.error || 'Status ' + answer.status); unplanned(); }
      else if (preview) {
        const plan = answer.body.plan;
        asking.planned = body;
        set($('ask-plan'), 'It would run ' + counted(plan.ticks, 'tick') + ' again: the first is ' + stamp(plan.first) + ', the last ' + stamp(plan.last) + '.');
        set($('ask-yes'), 'Run ' + counted(plan.ticks, 'tick') + ' again');
      } else {
        $('ask').close();
        given = answer.body.order || null;
        if (shown && shown.job && !view.run) renderAnswers(shown.job);
        say(action.label + ': ' + answer.body.status + (answer.body.note ? ', ' + answer.body.note : ''));
      }
    } catch (err) { set($('ask-error'), 'There is no connection: it is not known whether this was done.'); }
    $('ask-yes').disabled = false;
  });

  // What a screen reader is told: trouble and its end anywhere, and what happens to the job that is shown.
  const say = (text) => set($('say'), text);
  let before = null;
  const tell = (d) => {
    const rows = d.job ? [d.job] : d.jobs, lines = [], known = new Map(rows.map((j) => [j.job, j]));
    for (const [name, was] of before || []) {
      const is = known.get(name);
      if (!is) continue;
      if (is.trouble !== was.trouble) lines.push(name + (is.trouble ? ' is in trouble: ' + stateText(is) : ' has recovered'));
      else if (d.job && is.state !== was.state) lines.push(name + ' is ' + stateText(is));
    }
    before = known;
    if (lines.length) say(lines.slice(0, 3).join('. ') + (lines.length > 3 ? ', and ' + (lines.length - 3) + ' more' : ''));
  };

  let shown = null;
  const show = (id) => {
    for (const section of ['signin', 'list', 'job', 'shards', 'run']) $(section).hidden = section !== id;
    $('fleet').hidden = id !== 'list' || !$('replicas').tBodies[0].rows.length;
    $('locked').hidden = id !== 'list' || !hasLocks();
    if (focusNext && id !== 'signin') { focusNext = false; $(id + '-title').focus(); }
  };
  const render = (d) => {
    if (!d.app) return;
    if (!shown || !!shown.job !== !!d.job) before = null;
    shown = d;
    renderApp(d.app);
    if (d.job) (view.run ? renderRun : renderJob)(d); else if (d.jobs) (view.of ? renderShards : renderList)(d);
    show(d.job ? view.run ? 'run' : 'job' : view.job ? '' : view.of ? 'shards' : 'list');
    tell(d);
    const trouble = d.app.trouble ? '(' + d.app.trouble + ' in trouble) ' : '';
    document.title = plain(d.job ? (d.job.trouble ? '(' + stateText(d.job) + ') ' : trouble) + (view.run || d.job.job) + ' – ' + d.app.name : trouble + (view.of ? view.of + ' – ' : '') + d.app.name);
  };
  let late = 0; // how many runs are over their time-outs, of which the server sends no news
  setInterval(() => {
    const is = shown ? (shown.job ? [shown.job] : shown.jobs || []).filter(timedOut).length : late;
    if (!document.hidden && is !== late) { late = is; render(shown); }
  }, 1000);
  const wrong = (text) => {
    show('');
    sync($('notes'), [text], (t) => t, (t) => el('li', {}, t), () => {});
  };

  // Sign in and out.
  const showSignIn = (optional) => {
    disconnect();
    link('signed out', 'off');
    show('signin');
    $('signin-cancel').hidden = !optional;
    $('token').focus();
  };
  $('enter').addEventListener('click', () => showSignIn(true));
  $('signin-cancel').addEventListener('click', () => { shown = null; focusNext = true; connect(); });
  $('signin-form').addEventListener('submit', async (e) => {
    e.preventDefault();
    set($('signin-error'), '');
    try {
      const answer = await ask('/session', 'POST', { token: $('token').value.trim(), name: $('who').value.trim() });
      if (!answer.ok) { set($('signin-error'), answer.body.error); $('token').select(); return; }
      $('token').value = '';
      shown = null; focusNext = true; streamless = 0;
      connect();
    } catch (err) { set($('signin-error'), 'There is no connection.'); }
  });
  $('leave').addEventListener('click', async () => {
    disconnect();
    try { await ask('/session', 'DELETE'); } catch (err) { say('There is no connection.'); }
    location.assign(base);
  });

  // An address that the program has printed at its start has a token, which goes from the address bar at once.
  const enter = async () => {
    const token = new URLSearchParams(location.hash.slice(1)).get('token');
    if (!token) return;
    history.replaceState(null, '', location.pathname + location.search);
    try {
      const answer = await ask('/session', 'POST', { token, name: '' });
      if (!answer.ok) say(answer.body.error);
    } catch (err) { say('There is no connection.'); }
  };
  addEventListener('hashchange', async () => { await enter(); shown = null; connect(); });

  route();
  enter().then(connect);
})();
