// A table to sort, leaf through and choose from. Free text reaches it as text nodes alone.
// Rows keep their elements while they change, so that focus, choice and scroll stay.

const number = (value, digits) => value.toLocaleString(
  'en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits})

// Characters of a word that a phone shows on one line.
const LONG = 20

function shown(value, column) {
  if (value === null || value === undefined || Number.isNaN(value) || value === '') return '–'
  return column.digits === undefined ? String(value) : number(value, column.digits)
}

function make(name, parent, properties = {}) {
  const element = Object.assign(document.createElement(name), properties)
  parent.append(element)
  return element
}

// Lines break at spaces, after hyphens and after underscores; elsewhere where nothing else helps.
function write(cell, words) {
  cell.replaceChildren(...words.split(/(?<=_)/).flatMap(
    (part, i) => i ? [document.createElement('wbr'), part] : [part]))
  cell.classList.toggle('long', words.split(/[\s_-]/).some((part) => part.length > LONG))
}

export function render({model}) {
  const root = document.createElement('div')
  const table = make('table', make('div', root, {className: 'scroll'}))
  make('caption', table, {textContent: model.caption})
  const head = make('tr', make('thead', table))
  const body = make('tbody', table)
  const pager = make('div', root, {className: 'pager'})
  const back = make('button', pager, {type: 'button', textContent: '‹ previous'})
  const where = make('span', pager)
  const next = make('button', pager, {type: 'button', textContent: 'next ›'})
  where.setAttribute('role', 'status')

  const columns = model.columns
  let data = new Map()
  const lines = new Map()

  if (model.choosable) make('th', head, {className: 'choice', textContent: ''})
  const titles = columns.map((column) => {
    const cell = make('th', head, {scope: 'col', className: `c-${column.field}`})
    if (column.digits !== undefined) cell.classList.add('number')
    const button = make('button', cell, {type: 'button', title: column.hint || ''})
    make('span', button, {textContent: column.title})
    const mark = make('span', button, {className: 'mark'})
    mark.setAttribute('aria-hidden', 'true')
    button.addEventListener('click', () => {
      const [field, way] = model.order.split(',')
      const turn = field !== column.field ? 'asc' : way === 'asc' ? 'desc' : ''
      model.order = turn ? `${column.field},${turn}` : ''
    })
    return {cell, mark, column}
  })

  function choose(key, wanted) {
    const others = model.single ? [] : model.chosen.filter((one) => one !== key)
    if (!wanted) model.chosen = others
    else if (others.length < model.most) model.chosen = [...others, key]
    tick()
  }

  function line(key) {
    const row = document.createElement('tr')
    const entry = {row, cells: [], box: null}
    if (model.choosable) {
      const kind = model.single ? 'radio' : 'checkbox'
      entry.box = make('input', make('td', row, {className: 'choice'}), {type: kind})
      entry.box.addEventListener('change', () => choose(key, entry.box.checked))
      row.addEventListener('click', (event) => {
        const picked = window.getSelection && String(window.getSelection())
        if (event.target !== entry.box && !entry.box.disabled && !picked) entry.box.click()
      })
    }
    for (const column of columns) {
      const cell = make('td', row, {className: `c-${column.field}`})
      if (column.digits !== undefined) cell.classList.add('number')
      entry.cells.push(cell)
    }
    return entry
  }

  function fill(entry, values) {
    columns.forEach((column, i) => {
      const words = shown(values[column.field], column)
      if (entry.cells[i].textContent !== words) write(entry.cells[i], words)
    })
    if (entry.box) {
      entry.box.disabled = !values.choice
      entry.box.setAttribute('aria-label', `choose ${values.label || values.key}`)
    }
  }

  function tick() {
    const full = model.chosen.length >= model.most && !model.single
    for (const [key, entry] of lines) {
      if (!entry.box) continue
      const values = data.get(key)
      entry.box.checked = Boolean(values && values.choice) && model.chosen.includes(key)
      entry.box.disabled = !(values && values.choice) || (full && !entry.box.checked)
      entry.row.classList.toggle('chosen', entry.box.checked)
    }
  }

  function ordered() {
    const rows = [...data.values()]
    const [field, way] = model.order.split(',')
    if (!columns.some((column) => column.field === field)) return rows
    const sign = way === 'desc' ? -1 : 1
    const absent = (value) => value === null || value === undefined || value === ''
    return rows.map((row, i) => [row, i]).sort(([a, i], [b, j]) => {
      const [x, y] = [a[field], b[field]]
      if (absent(x) || absent(y)) return absent(x) - absent(y) || i - j
      const less = typeof x === 'number' && typeof y === 'number'
        ? x - y : String(x).localeCompare(String(y), 'en', {numeric: true})
      return sign * less || i - j
    }).map(([row]) => row)
  }

  function draw() {
    const pages = Math.max(1, Math.ceil(data.size / model.size))
    const page = Math.min(Math.max(0, model.page), pages - 1)
    const rows = ordered().slice(page * model.size, (page + 1) * model.size)
    for (const key of [...lines.keys()]) if (!data.has(key)) lines.delete(key)
    const elements = rows.map((values) => {
      if (!lines.has(values.key)) lines.set(values.key, line(values.key))
      const entry = lines.get(values.key)
      fill(entry, values)
      return entry.row
    })
    const old = [...body.children]
    if (old.length !== elements.length || old.some((row, i) => row !== elements[i])) {
      const focus = root.getRootNode().activeElement
      body.replaceChildren(...elements)
      if (focus && body.contains(focus)) focus.focus({preventScroll: true})
    }
    for (const {cell, mark, column} of titles) {
      const [field, way] = model.order.split(',')
      const own = field === column.field
      cell.setAttribute('aria-sort', !own ? 'none' : way === 'desc' ? 'descending' : 'ascending')
      mark.textContent = !own ? '' : way === 'desc' ? '▼' : '▲'
    }
    pager.hidden = pages === 1
    where.textContent = `page ${page + 1} of ${pages}`
    back.disabled = page === 0
    next.disabled = page === pages - 1
    tick()
  }

  function load() {
    data = new Map(model.rows.map((row) => [row.key, row]))
    for (const row of model.changed) if (data.has(row.key)) data.set(row.key, row)
    draw()
  }

  function turn(by) {
    const pages = Math.max(1, Math.ceil(data.size / model.size))
    model.page = Math.min(Math.max(0, model.page), pages - 1) + by
  }
  back.addEventListener('click', () => turn(-1))
  next.addEventListener('click', () => turn(1))
  model.on('rows', load)
  model.on('changed', load)
  model.on('chosen', tick)
  model.on('order', draw)
  model.on('page', draw)
  load()
  return root
}
