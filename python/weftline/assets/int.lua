
-- INT 2.1, telemetry reports 2.0, PINT's hop-by-hop option ------------------------------------------------------------
--
-- The values that mark INT are those of docs/collect.md. Filters begin with weftline.int, weftline.report and weftline.pint.

local INT_PORT, INT_GRE, INT_DSCP, REPORT_PORT, GPE_INT, GENEVE_INT = 49203, 0x88b6, 0x17, 32766, 0x82, 0x0103
local PINT_OPTION = 0x3e
local int = Proto("weftline.int", "In-band network telemetry")
local n = declare(int, {
  { "uint8", "type", "Type", { [1] = "INT-MD", [2] = "destination", [3] = "INT-MX" } },
  { "uint8", "next", "Next-protocol type, or flags of the carrier" },
  { "uint16", "original", "What the sink restores" },
  { "uint8", "version", "Version" },
  { "flag", "discard", "The sink discards the packet (D)", 8 },
  { "flag", "exceeded", "The hop count was used up (E)", 4 },
  { "flag", "mtu_exceeded", "The MTU was exceeded (M)", 2 },
  { "uint8", "hop_words", "Words of a hop" },
  { "uint8", "remaining", "Remaining hops" },
  { "uint16", "bitmap", "Instructions" },
  { "uint16", "domain", "Domain" },
  { "uint16", "domain_bitmap", "Instructions of the domain" },
  { "uint16", "domain_flags", "Flags of the domain" },
  { "uint32", "node", "Node" },
  { "uint16", "ingress_interface", "Ingress interface" },
  { "uint16", "egress_interface", "Egress interface" },
  { "uint32", "latency", "Hop latency" },
  { "uint8", "queue_id", "Queue" },
  { "uint32", "queue", "Occupancy of the queue" },
  { "uint64", "ingress_time", "Ingress time" },
  { "uint64", "egress_time", "Egress time" },
  { "uint32", "logical_ingress", "Logical ingress interface" },
  { "uint32", "logical_egress", "Logical egress interface" },
  { "uint32", "utilisation", "Utilisation of the egress" },
  { "uint8", "buffer_id", "Buffer" },
  { "uint32", "buffer", "Occupancy of the buffer" },
  { "uint32", "domain_word", "Word of the domain" },
  { "uint32", "source_word", "Word that only the source inserts" },
  { "uint32", "complement", "Checksum complement" },
})

local function has(bitmap, place)
  return bit.band(bitmap, bit.rshift(0x8000, place)) ~= 0
end

local function unknown(range)
  local ones = true
  for at = 0, range:len() - 1, 4 do
    ones = ones and range(at, 4):uint() == 0xffffffff
  end
  return ones
end

-- By bit: words, and what adds the value. All ones: the node does not have it.
local VALUES = {
  [0] = { 1, function(tree, r) tree:add(n.node, r) end },
  { 1, function(tree, r) tree:add(n.ingress_interface, r(0, 2)) tree:add(n.egress_interface, r(2, 2)) end },
  { 1, function(tree, r) tree:add(n.latency, r) end },
  { 1, function(tree, r) tree:add(n.queue_id, r(0, 1)) tree:add(n.queue, r(1, 3)) end },
  { 2, function(tree, r) tree:add(n.ingress_time, r) end },
  { 2, function(tree, r) tree:add(n.egress_time, r) end },
  { 2, function(tree, r) tree:add(n.logical_ingress, r(0, 4)) tree:add(n.logical_egress, r(4, 4)) end },
  { 1, function(tree, r) tree:add(n.utilisation, r) end },
  { 1, function(tree, r) tree:add(n.buffer_id, r(0, 1)) tree:add(n.buffer, r(1, 3)) end },
}

-- Adds the values of bits `first` to 14; returns where they end.
local function add_values(tree, bytes, bitmap, first)
  local at = 0
  for place = first, 14 do
    if has(bitmap, place) then
      local value = VALUES[place] or { 1 }
      local length = 4 * value[1]
      if at + length > bytes:len() then
        return bytes:len()
      end
      if value[2] and not unknown(bytes(at, length)) then
        value[2](tree, bytes(at, length))
      end
      at = at + length
    end
  end
  return at
end

local function add_words(tree, field, bytes, from, to)
  for at = from, to - 4, 4 do
    tree:add(field, bytes(at, 4))
  end
end

local function add_hop(root, bytes, number, bitmap, hop_bytes)
  local tree = root:add(int, bytes, "Hop " .. number)
  local values_end = add_values(tree, bytes, bitmap, 0)
  local tail = has(bitmap, 15) and 4 or 0
  add_words(tree, n.domain_word, bytes, values_end, hop_bytes - tail)
  add_words(tree, n.source_word, bytes, math.max(values_end, hop_bytes - tail), bytes:len() - tail)
  if tail > 0 then
    tree:add(n.complement, bytes(bytes:len() - 4, 4))
  end
end

-- The header after the shim; what it says in a few words.
local function add_int(root, kind, bytes)
  if bytes:len() < 12 or bit.rshift(bytes(0, 1):uint(), 4) ~= 2 then
    return nil
  end
  local tree = root:add(int, bytes)
  local bitmap = bytes(4, 2):uint()
  tree:add(n.version, bytes(0, 1), 2)
  tree:add(n.discard, bytes(0, 1))
  tree:add(n.type, bytes(0, 1), kind)
  tree:add(n.bitmap, bytes(4, 2))
  tree:add(n.domain, bytes(6, 2))
  tree:add(n.domain_bitmap, bytes(8, 2))
  tree:add(n.domain_flags, bytes(10, 2))
  if kind == 3 then
    add_words(tree, n.source_word, bytes, 12, bytes:len())
    return "INT-MX"
  end
  local hop_bytes = 4 * bit.band(bytes(2, 1):uint(), 31)
  tree:add(n.exceeded, bytes(0, 1))
  tree:add(n.mtu_exceeded, bytes(0, 1))
  tree:add(n.hop_words, bytes(2, 1), hop_bytes / 4)
  tree:add(n.remaining, bytes(3, 1))
  local hops = hop_bytes == 0 and 0 or math.floor((bytes:len() - 12) / hop_bytes)
  -- The newest hop comes first; hops are shown in the order in which the packet passed them.
  for number = 1, hops do
    local from = 12 + (hops - number) * hop_bytes
    local to = number == 1 and bytes:len() or from + hop_bytes
    add_hop(tree, bytes(from, to - from), number, bitmap, hop_bytes)
  end
  tree:append_text(": " .. hops .. " hops")
  return "INT-MD, " .. hops .. " hops"
end

-- A shim of four bytes and its header; where they end, and what they say.
local function add_shim(root, bytes)
  if bytes:len() < 16 or 4 + 4 * bytes(1, 1):uint() > bytes:len() then
    return nil
  end
  local length = 4 + 4 * bytes(1, 1):uint()
  local kind = bit.rshift(bytes(0, 1):uint(), 4)
  local said = (kind == 1 or kind == 3) and length >= 16 and add_int(root, kind, bytes(4, length - 4))
  if not said then
    return nil
  end
  root:add(n.next, bytes(0, 1), bit.band(bytes(0, 1):uint(), 15))
  root:add(n.original, bytes(2, 2))
  return length, said
end

local function show(info, said)
  info.cols.protocol = "INT"
  info.cols.info = said
end

function int.dissector(buffer, info, root)
  local length, said = add_shim(root, buffer())
  if length == nil then
    return 0
  end
  show(info, said)
  -- What followed IP before, where it is a packet of the lab (weftline.lua).
  local inside = bit.band(bit.rshift(buffer(0, 1):uint(), 2), 3) == 2 and buffer(3, 1):uint() == 17
  if inside and buffer:len() > length + 8 and buffer(length + 2, 2):uint() == LAB_PORT then
    lab.dissector(buffer(length + 8):tvb(), info, root)
  end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(INT_PORT, int)
DissectorTable.get("gre.proto"):add(INT_GRE, int)

-- Reports: a group of one node, each with values and the start of a packet.
local report = Proto("weftline.report", "Telemetry report")
local INNER = { [0] = "none", "TLV", "domain", "Ethernet", "IPv4", "IPv6" }
local g = declare(report, {
  { "uint8", "version", "Version" },
  { "uint8", "hardware", "Hardware unit" },
  { "uint32", "sequence", "Sequence" },
  { "uint32", "node", "Node" },
  { "uint8", "type", "Type", { [0] = "inner only", "INT", "IOAM" } },
  { "uint8", "inner", "Inner", INNER },
  { "flag", "dropped", "Dropped", 128 },
  { "flag", "congested", "Congested queue", 64 },
  { "flag", "tracked", "Tracked flow", 32 },
  { "flag", "intermediate", "Intermediate", 16 },
  { "uint16", "bitmap", "Values" },
  { "uint16", "domain", "Domain" },
  { "uint8", "drop_queue", "Queue of the drop" },
  { "uint8", "drop_reason", "Reason of the drop" },
  { "uint32", "domain_word", "Word of the domain" },
})
local INNER_DISSECTORS = { [3] = "eth_withoutfcs", [4] = "ip", [5] = "ipv6" }

local function add_values_of_report(tree, body, words)
  if body:len() < 8 + 4 * words then
    return nil
  end
  local bitmap = body(0, 2):uint()
  tree:add(g.bitmap, body(0, 2))
  tree:add(g.domain, body(2, 2))
  if words > 0 then
    local metadata = body(8, 4 * words)
    local at = add_values(tree, metadata, bitmap, 1)
    if has(bitmap, 15) and at + 4 <= metadata:len() then
      tree:add(g.drop_queue, metadata(at, 1))
      tree:add(g.drop_reason, metadata(at + 1, 1))
      at = at + 4
    end
    add_words(tree, g.domain_word, metadata, at, metadata:len())
  end
  return 8 + 4 * words
end

local function add_inner(inner, bytes, info, root)
  local name = INNER_DISSECTORS[inner]
  if name then
    Dissector.get(name):call(bytes:tvb(), info, root)
  elseif inner == 1 then
    local at = 0
    while at + 4 <= bytes:len() do
      local kind, length = bit.rshift(bytes(at, 1):uint(), 4), 4 * bytes(at + 1, 1):uint()
      if at + 4 + length > bytes:len() then
        return
      end
      if kind >= 1 and kind <= 3 and length > 0 then
        add_inner(kind + 2, bytes(at + 4, length), info, root)
      end
      at = at + 4 + length
    end
  end
end

function report.dissector(buffer, info, root)
  if buffer:len() < 8 or bit.rshift(buffer(0, 1):uint(), 4) ~= 2 then
    return 0
  end
  local word = buffer(0, 4):uint()
  local group = root:add(report, buffer())
  group:add(g.version, buffer(0, 1), 2)
  group:add(g.hardware, buffer(0, 2), bit.band(bit.rshift(word, 22), 63))
  group:add(g.sequence, buffer(0, 4), bit.band(word, 0x3fffff))
  group:add(g.node, buffer(4, 4))
  local at, count = 8, 0
  while at + 4 <= buffer:len() do
    local types, length, words = buffer(at, 1):uint(), buffer(at + 1, 1):uint(), buffer(at + 2, 1):uint()
    local body_bytes = length == 255 and buffer:len() - at - 4 or 4 * length
    if at + 4 + body_bytes > buffer:len() or types >= 0x20 then
      break
    end
    local tree = group:add(report, buffer(at, 4 + body_bytes), "Report " .. count + 1)
    tree:add(g.type, buffer(at, 1), bit.rshift(types, 4))
    tree:add(g.inner, buffer(at, 1), bit.band(types, 15))
    for _, flag in ipairs({ "dropped", "congested", "tracked", "intermediate" }) do
      tree:add(g[flag], buffer(at + 3, 1))
    end
    if body_bytes > 0 then
      local body = buffer(at + 4, body_bytes)
      local fixed = types < 0x10 and 4 * words or add_values_of_report(tree, body, words)
      if fixed and fixed < body:len() then
        add_inner(bit.band(types, 15), body(fixed), info, tree)
      end
    end
    at, count = at + 4 + body_bytes, count + 1
  end
  info.cols.protocol = "INT report"
  info.cols.info = count .. " reports of node " .. buffer(4, 4):uint() .. ", sequence " .. bit.band(word, 0x3fffff)
  return buffer:len()
end

DissectorTable.get("udp.port"):add(REPORT_PORT, report)

-- PINT's option of IPv6, INT by DSCP and in Geneve: found after all else, because no table leads there.
local pint = Proto("weftline.pint", "PINT")
local d = declare(pint, {
  { "uint8", "plan", "Plan (its low bits)" },
  { "uint8", "hop_limit", "Hop limit that the packet began with" },
  { "bytes", "digest", "Digest" },
})
local header6 = Field.new("ipv6.hopopts")
local code_point = Field.new("ip.dsfield.dscp")
local code_point6 = Field.new("ipv6.tclass.dscp")
local segment, datagram = Field.new("tcp.payload"), Field.new("udp.payload")
local class, data = Field.new("geneve.option.class"), Field.new("geneve.option.unknown.data")
local option_type = Field.new("geneve.option.type")

local function add_options(header, root)
  local at, length = 2, header:len()
  while at + 2 <= length do
    local kind = header(at, 1):uint()
    local size = kind == 0 and 0 or header(at + 1, 1):uint()
    if kind == PINT_OPTION and (size == 4 or size == 12) and at + 2 + size <= length then
      local tree = root:add(pint, header(at, 2 + size))
      tree:add(d.plan, header(at + 2, 1))
      tree:add(d.hop_limit, header(at + 3, 1))
      tree:add(d.digest, header(at + 4, size - 2))
    end
    at = at + (kind == 0 and 1 or 2 + size)
  end
end

function pint.dissector(_, info, root)
  for _, found in ipairs({ header6() }) do
    add_options(found.range, root)
  end
  local mark = code_point() or code_point6()
  local payload = segment() or datagram()
  if mark and mark.value == INT_DSCP and payload then
    local _, said = add_shim(root, payload.range)
    if said then
      show(info, said)
    end
  end
  local classes, types = { class() }, { option_type() }
  for place, found in ipairs({ data() }) do
    if classes[place] and classes[place].value == GENEVE_INT then
      local said = add_int(root, bit.band(types[place].value, 127), found.range)
      if said then
        show(info, said)
      end
    end
  end
end

register_postdissector(pint)

-- VXLAN-GPE is Wireshark's own; INT in it has no number there.
local gpe = DissectorTable.get("vxlan.next_proto")
if gpe then
  gpe:add(GPE_INT, int)
end
