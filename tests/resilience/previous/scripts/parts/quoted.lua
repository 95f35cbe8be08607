-- Text as JSON writes it.
local quotes = {}  -- a page quotes the same few words again and again
local function quoted(text)
  if not quotes[text] then
    quotes[text] = '"' .. (string.find(text, '[%c"\\]')
      and string.gsub(text, '[%c"\\]', function(c) return string.format('\\u%04x', string.byte(c)) end) or text) .. '"'
  end
  return quotes[text]
end
