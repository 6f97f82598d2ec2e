-- Drives a Neovim as a person would, and writes what was to be seen. Run by `-c 'luafile drive.lua'` in an editor that was started
-- with a user's init.lua; environment: DRIVE_REPORT is the JSON file to write. Works from Neovim 0.7 on.

local report = { version = vim.version() }
local PATIENCE = 30000

local function text()
  return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n') .. '\n'
end

-- Ends the editor with what was seen so far; `fault` is why it goes no further.
local function finish(fault)
  report.fault = fault
  report.text = text()
  local file = assert(io.open(os.getenv('DRIVE_REPORT'), 'w'))
  file:write(vim.fn.json_encode(report))
  file:close()
  vim.cmd('qall!')
end

-- Goes on when `met` returns something true, and returns that. The editor works meanwhile: keys, messages and redraws are taken.
local function wait(what, met)
  local thread = coroutine.running()
  local timer, since = vim.loop.new_timer(), vim.loop.now()
  timer:start(0, 5, vim.schedule_wrap(function()
    if timer:is_closing() then return end
    local fine, found = pcall(met)
    if found or vim.loop.now() - since > PATIENCE then
      timer:close()
      coroutine.resume(thread, fine, found)
    end
  end))
  local fine, found = coroutine.yield()
  if not fine then error(found) end
  if not found then error('waited in vain for ' .. what .. '\n' .. vim.fn.execute('messages')) end
  return found
end

local function press(keys)
  vim.api.nvim_input(keys)
end

-- Puts the cursor on the first character of `words`, `further` characters on; plain text, searched from the top.
local function go_to(words, further)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(0, 0, -1, false)) do
    local column = line:find(words, 1, true)
    if column then
      return vim.api.nvim_win_set_cursor(0, { number, column - 1 + (further or 0) })
    end
  end
  error('no ' .. words)
end

local function diagnostics()
  local found = {}
  for _, one in ipairs(vim.diagnostic.get(0)) do
    local line = vim.api.nvim_buf_get_lines(0, one.lnum, one.lnum + 1, false)[1]
    table.insert(found, {
      code = one.code or vim.tbl_get(one, 'user_data', 'lsp', 'code'),
      message = one.message,
      source = one.source,
      under = line:sub(one.col + 1, one.end_col),
    })
  end
  return found
end

local function clean()
  return #vim.diagnostic.get(0, { severity = { min = vim.diagnostic.severity.WARN } }) == 0
end

-- The first choice is taken, wherever the editor lets its user choose.
vim.ui.select = function(items, options, choose)
  report.choices = vim.tbl_map(options.format_item or tostring, items)
  choose(items[1], 1)
end

local acts = {}

function acts.diagnose()
  wait('a diagnostic', function() return #vim.diagnostic.get(0) > 0 end)
  report.diagnostics = diagnostics()
end

function acts.fix()
  go_to('temprature')
  vim.lsp.buf.code_action()
  wait('the fix', function() return text():find('    temperature: 0', 1, true) end)
  wait('the end of the diagnostic', clean)
end

-- Keys of a person, characters that are two units in UTF-16 among them; then all of it is taken back.
function acts.type()
  local before = text()
  go_to('Is this polite?')
  press('$i 😀 {<Esc>')
  wait('a diagnostic', function() return not clean() end)
  report.typed = diagnostics()[1]
  press('u')
  wait('the text of before', function() return text() == before end)
  wait('the end of the diagnostic', clean)
end

-- Between the brackets of `depends_on: []`, with the keys of completion; the last offer is taken.
function acts.complete()
  go_to('depends_on: []', #'depends_on: [')
  press('i<C-x><C-o>')
  wait('the menu', function() return vim.fn.pumvisible() == 1 end)
  report.offers = vim.tbl_map(function(item) return item.abbr or item.word end, vim.fn.complete_info({ 'items' }).items)
  press('<C-p>') -- past the first one: to none, or to the last one
  press('<C-p>')
  wait('a choice', function() return vim.fn.complete_info({ 'selected' }).selected >= 0 end)
  local chosen = vim.fn.complete_info({ 'selected' }).selected
  report.chosen = report.offers[chosen + 1]
  press('<C-y><Esc>')
  wait('the end of typing', function() return vim.fn.mode() == 'n' end)
  report.completed = vim.api.nvim_get_current_line()
end

-- What opens by itself while a state path is typed, where that is switched on; then it is taken back.
function acts.menu()
  local before = text()
  go_to('Is this polite?')
  press('$i {state.')
  wait('the menu', function() return vim.fn.pumvisible() == 1 end)
  report.menu = vim.tbl_map(function(item) return item.abbr or item.word end, vim.fn.complete_info({ 'items' }).items)
  press('<C-e><Esc>u')
  wait('the text of before', function() return vim.fn.mode() == 'n' and text() == before end)
  wait('the end of the diagnostic', clean)
end

function acts.rename()
  go_to('id: classify', #'id: ')
  vim.lsp.buf.rename('sort')
  wait('the new name', function() return text():find('id: sort', 1, true) end)
end

local function float()
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(window).relative ~= '' then return window end
  end
end

function acts.hover()
  go_to('output: verdict', 1)
  vim.lsp.buf.hover()
  local window = wait('the hover', float)
  report.hover = table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), '\n')
  vim.api.nvim_win_close(window, true)
end

function acts.define()
  go_to('{state.category}', #'{state.')
  local here = vim.api.nvim_win_get_cursor(0)
  vim.lsp.buf.definition()
  wait('the definition', function() return vim.api.nvim_win_get_cursor(0)[1] ~= here[1] end)
  report.defined = vim.api.nvim_get_current_line()
end

function acts.outline()
  vim.lsp.buf.document_symbol()
  local list = wait('the outline', function()
    local items = vim.fn.getqflist()
    if #items == 0 then items = vim.fn.getloclist(0) end
    return #items > 0 and items
  end)
  report.outline = vim.tbl_map(function(item) return item.text end, list)
  vim.cmd('cclose | lclose')
end

-- From 0.10 on.
function acts.hints()
  vim.lsp.inlay_hint.enable(true)
  local hints = wait('hints', function()
    local found = vim.lsp.inlay_hint.get({ bufnr = 0 })
    return #found > 0 and found
  end)
  report.hints = vim.tbl_map(function(hint)
    local label = hint.inlay_hint.label
    return type(label) == 'string' and label or label[1].value
  end, hints)
end

-- From 0.9 on.
function acts.colours()
  go_to('{state.ticket}', #'{state.')
  local place = vim.api.nvim_win_get_cursor(0)
  local tokens = wait('tokens', function()
    local found = vim.lsp.semantic_tokens.get_at_pos(0, place[1] - 1, place[2])
    return found and #found > 0 and found
  end)
  report.colours = vim.tbl_map(function(token) return token.type end, tokens)
end

-- Lenses, from 0.11 on: those on the line where these words are.
local function lenses(words)
  go_to(words)
  local line, found = vim.api.nvim_win_get_cursor(0)[1] - 1, {}
  for _, lens in ipairs(vim.lsp.codelens.get(vim.api.nvim_get_current_buf())) do
    if lens.range.start.line == line then table.insert(found, lens.command.title) end
  end
  return found
end

-- Presses the lens above the workflow that begins so, with the user's own key.
local function run_lens(words)
  wait('the lens ' .. words, function()
    for _, title in ipairs(lenses('name: tickets')) do
      if vim.startswith(title, words) then return true end
    end
  end)
  local select = vim.ui.select
  vim.ui.select = function(items, options, choose)
    vim.ui.select = select
    for number, item in ipairs(items) do
      if vim.startswith(options.format_item(item), words) then return choose(item, number) end
    end
    error('no lens ' .. words)
  end
  vim.cmd('normal grl')
end

local function run_hints()
  local found = {}
  for _, hint in ipairs(vim.lsp.inlay_hint.get({ bufnr = 0 })) do
    local label = hint.inlay_hint.label
    label = type(label) == 'string' and label or label[1].value
    for _, mark in ipairs({ '✓', '✗', '…', '‖', '–' }) do
      if vim.startswith(label, mark) then table.insert(found, label) end
    end
  end
  return found
end

local function until_hint(number, mark)
  return wait('hint ' .. number .. ' to be ' .. mark, function()
    local found = run_hints()
    return found[number] and vim.startswith(found[number], mark) and found
  end)
end

-- Waits for lenses above the workflow of which this one begins so.
local function until_lens(number, mark)
  return wait('lens ' .. number .. ' to be ' .. mark, function()
    local found = lenses('name: tickets')
    return found[number] and vim.startswith(found[number], mark) and found
  end)
end

function acts.run()
  report.lenses = until_lens(1, '▶')
  report.steps = {}
  for _, step in ipairs({ 'id: classify', 'id: wait', 'id: ask', 'id: answer' }) do
    table.insert(report.steps, lenses(step)[1])
  end
  report.status = ''
  local echo = vim.api.nvim_echo
  vim.api.nvim_echo = function(chunks, ...)
    report.status = report.status .. chunks[1][1] .. '\n'
    return echo(chunks, ...)
  end
  run_lens('▶ Run')
  report.running = until_hint(2, '…')
  vim.lsp.codelens.refresh()
  report['lenses while running'] = until_lens(1, '■')
  wait('the status', function() return report.status:find('wait', 1, true) end)
end

function acts.cancel()
  run_lens('■ Cancel')
  report.cancelled = until_hint(2, '✗')
  report['lenses after cancel'] = until_lens(3, '⏵')
end

function acts.resume()
  assert(io.open('go', 'w')):close()
  run_lens('⏵ Resume')
  report.paused = until_hint(3, '‖')
  report['lenses at the gate'] = until_lens(3, '✓')
end

function acts.approve()
  run_lens('✓ Approve')
  report.done = until_hint(4, '✓')
  report['lenses when done'] = wait('the last lens to go', function()
    local found = lenses('name: tickets')
    return #found == 2 and found
  end)
end

-- With what 0.7 has: lenses that are asked for by hand.
function acts.gate()
  assert(io.open('go', 'w')):close()
  wait('the server', function() return #vim.lsp.buf_get_clients(0) > 0 end)
  vim.lsp.codelens.refresh()
  report.lenses = until_lens(1, '▶')
  run_lens('▶ Run with mock')
  report.said = wait('the message', function() return vim.fn.execute('messages'):match('[^\n]*waits at[^\n]*') end)
  vim.lsp.codelens.refresh()
  report['lenses at the gate'] = until_lens(3, '✓')
  run_lens('✓ Approve')
  report['lenses when done'] = wait('the last lens to go', function()
    vim.lsp.codelens.refresh()
    local found = lenses('name: tickets')
    return #found == 2 and found
  end)
end

coroutine.wrap(function()
  local fine, fault = xpcall(function()
    for name in os.getenv('DRIVE_ACTS'):gmatch('%S+') do
      report.act = name
      acts[name]()
    end
  end, debug.traceback)
  finish(not fine and fault or nil)
end)()
