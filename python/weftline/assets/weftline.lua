-- weftline's own headers for Wireshark and tshark: telemetry of RDMA packets (INT, PINT), tags of load balancers (MP-HULA's
-- marks, CONGA, Clove, ConWeave) and their probes, the packets of pHost, pFabric, Fastpass, NDP and Homa, and those of
-- hosts of the simulator in the lab.
--
--     tshark -X lua_script:weftline.lua -r capture.pcapng
--
-- The forms are described in docs/packets.md. Filters begin with weftline.tag, weftline.telemetry, weftline.packet and
-- weftline.lab.

local TAG_ETHERTYPE, PACKET_PORT, TELEMETRY_PORT, LAB_PORT = 0x88b5, 49200, 49201, 22342
local NONE = 0xffffffff

local function names(first, ...)
  local found = {}
  for place, name in ipairs({ ... }) do
    found[first + place - 1] = name
  end
  return found
end

-- Makes the fields of a protocol; each is { type, key, title, names or mask }.
local function declare(proto, list)
  local fields = {}
  for _, each in ipairs(list) do
    local kind, key, title, names_of = each[1], each[2], each[3], each[4]
    local abbreviation = proto.name:lower() .. "." .. key
    if kind == "flag" then
      fields[key] = ProtoField.bool(abbreviation, title, 8, nil, names_of)
    elseif kind == "bytes" then
      fields[key] = ProtoField.bytes(abbreviation, title)
    else
      fields[key] = ProtoField[kind](abbreviation, title, base.DEC, names_of)
    end
  end
  local all = {}
  for _, field in pairs(fields) do
    all[#all + 1] = field
  end
  proto.fields = all
  return fields
end

-- Tags and probes -----------------------------------------------------------------------------------------------------

local TAGS = names(1, "MP-HULA mark", "CONGA", "Clove", "probe", "ConWeave", "answer of ConWeave")
local tag = Proto("weftline.tag", "weftline tag")
local t = declare(tag, {
  { "uint8", "kind", "Kind", TAGS },
  { "uint64", "connection", "Connection (the first 59 of 64 bits)" },
  { "uint8", "subflow", "Subflow" },
  { "uint32", "leaf", "Leaf that wrote it" },
  { "uint8", "uplink", "Uplink" },
  { "uint8", "congestion", "Congestion so far" },
  { "uint32", "hash", "Hash of the flow" },
  { "uint8", "path", "Path (255: none)" },
  { "uint8", "utilisation", "Utilisation so far, in 1/256" },
  { "uint8", "told", "Tells of (255: nothing)" },
  { "uint8", "met", "What was met there" },
  { "uint32", "tor", "ToR that it is of" },
  { "uint8", "flag", "Flag", names(0, "data", "INIT", "TAIL") },
  { "uint8", "phase", "Phase" },
  { "uint16", "epoch", "Epoch" },
  { "uint8", "second_port", "Port at the second switch" },
  { "uint32", "left", "Departure from the first ToR, or that of the TAIL (ns)" },
  { "uint8", "answer", "Answer", names(0, "to INIT", "to TAIL (CLEAR)", "path congested (NOTIFY)") },
})

-- Epoch, path and time of ConWeave; the epoch.
local function add_epoch(tree, body)
  local epoch = body(4, 2):uint() % 4096
  tree:add(t.epoch, body(4, 2), epoch)
  tree:add(t.second_port, body(6, 1))
  tree:add(t.uplink, body(7, 1))
  tree:add(t.left, body(8, 4))
  return epoch
end

-- Each takes the option or the probe, and says it in a few words.
local tag_kinds = {
  [1] = function(tree, body)
    tree:add(t.connection, body(4, 8))
    tree:add(t.subflow, body(3, 1))
    return "subflow " .. body(3, 1):uint()
  end,
  [2] = function(tree, body)
    tree:add(t.leaf, body(4, 4))
    tree:add(t.uplink, body(8, 1))
    tree:add(t.congestion, body(9, 1))
    tree:add(t.told, body(3, 1))
    tree:add(t.met, body(10, 1))
    return "uplink " .. body(8, 1):uint()
  end,
  [3] = function(tree, body)
    tree:add(t.hash, body(4, 4))
    tree:add(t.path, body(8, 1))
    tree:add(t.utilisation, body(9, 1))
    tree:add(t.told, body(3, 1))
    tree:add(t.met, body(10, 1))
    return "path " .. body(8, 1):uint()
  end,
  [4] = function(tree, body)
    tree:add(t.tor, body(4, 4))
    tree:add(t.utilisation, body(8, 1))
    return "of ToR " .. body(4, 4):uint() .. ", " .. body(8, 1):uint() .. "/256"
  end,
  [5] = function(tree, body)
    local flag = body(3, 1):uint() % 4
    tree:add(t.flag, body(3, 1), flag)
    tree:add(t.phase, body(3, 1), math.floor(body(3, 1):uint() / 4))
    return "epoch " .. add_epoch(tree, body)
  end,
  [6] = function(tree, body)
    tree:add(t.answer, body(3, 1))
    return "epoch " .. add_epoch(tree, body)
  end,
}
local TAG_BYTES, TAG_OPTION = 12, 158

-- Adds a tag to the tree; what it says, or nothing where it is none.
local function add_tag(body, root)
  local kind = body(2, 1):uint()
  if body(1, 1):uint() ~= TAG_BYTES or tag_kinds[kind] == nil then
    return nil
  end
  local tree = root:add(tag, body)
  tree:add(t.kind, body(2, 1))
  local said = TAGS[kind] .. ", " .. tag_kinds[kind](tree, body)
  tree:append_text(": " .. said)
  return said
end

-- A probe is a frame of its own; other tags are options of the IPv4 header, looked for after all else.
local probe = Proto("weftline.probe", "weftline probe")

function probe.dissector(buffer, info, root)
  if buffer:len() < TAG_BYTES then
    return 0
  end
  local said = add_tag(buffer(0, TAG_BYTES), root)
  if said == nil then
    return 0
  end
  info.cols.protocol = "weftline"
  info.cols.info = said
  return buffer:len()
end

DissectorTable.get("ethertype"):add(TAG_ETHERTYPE, probe)

local ip_header = Field.new("ip")

function tag.dissector(_, _, root)
  for _, found in ipairs({ ip_header() }) do
    local header = found.range
    if header:len() >= 20 + TAG_BYTES and header(20, 1):uint() == TAG_OPTION then
      add_tag(header(20, TAG_BYTES), root)
    end
  end
end

register_postdissector(tag)

-- Telemetry of RDMA packets -------------------------------------------------------------------------------------------

local OPERATIONS = { [0] = "SEND first", [1] = "SEND middle", [2] = "SEND last", [4] = "SEND only", [17] = "acknowledge" }
local RATES = names(1, 10, 25, 40, 50, 100, 200, 400)
local telemetry = Proto("weftline.telemetry", "weftline telemetry")
local m = declare(telemetry, {
  { "flag", "int", "INT", 1 },
  { "flag", "pint", "PINT", 2 },
  { "flag", "timestamp", "Timestamp", 4 },
  { "uint8", "overwritten", "More hops than records", names(0, "no", "yes") },
  { "uint16", "length", "Length" },
  { "uint16", "port", "Port that the rest is for" },
  { "uint8", "hops", "Hops" },
  { "uint16", "path", "Path id" },
  { "uint64", "sent", "Sent, in ns" },
  { "uint16", "rate_gbps", "Rate, in Gb/s (0: another)" },
  { "uint32", "time_ns", "Time, in ns (24 bits)" },
  { "uint64", "sent_bytes", "Bytes sent by the port (20 bits of its unit)" },
  { "uint64", "queue_bytes", "Bytes queued" },
  { "bytes", "digest", "Digest" },
  { "flag", "looped", "A loop was found", 128 },
  { "uint8", "opcode", "Operation", OPERATIONS },
  { "uint32", "queue_pair", "Queue pair" },
  { "uint32", "packet", "Packet sequence number" },
  { "flag", "echo", "Echoes a mark (BECN)", 64 },
  { "uint8", "syndrome", "Syndrome" },
})

-- Records are of hops in order, unless later hops have overwritten earlier ones.
local function int_records(tree, buffer, from, records, multiple, overwritten)
  for hop = 1, records do
    local record = buffer(from + 8 * (hop - 1), 8)
    local high, low = record(0, 4):uint(), record(4, 4):uint()
    local rate = RATES[bit.rshift(high, 29)] or 0
    local time = bit.band(bit.rshift(high, 5), 0xffffff)
    local sent = bit.bor(bit.lshift(bit.band(high, 31), 15), bit.band(bit.rshift(low, 17), 0x7fff))
    local queue = bit.band(low, 0x1ffff)
    local branch = tree:add(telemetry, record, (overwritten and "Record " or "Hop ") .. hop)
    branch:add(m.rate_gbps, record, rate)
    branch:add(m.time_ns, record, time)
    branch:add(m.sent_bytes, record, UInt64(sent) * UInt64(128 * multiple))
    branch:add(m.queue_bytes, record, UInt64(queue) * UInt64(80 * multiple))
    -- A full field stands for longer queues, too.
    local minimum = queue == 0x1ffff and "at least " or ""
    branch:append_text(": " .. rate .. " Gb/s, " .. minimum .. queue * 80 * multiple .. " bytes queued")
  end
end

-- The base transport header of InfiniBand, whose own dissector wants all of the payload.
local function rdma(tree, buffer, info)
  if buffer:len() < 12 then
    return
  end
  local code, flow, packet = buffer(0, 1):uint(), buffer(5, 3):uint(), buffer(9, 3):uint()
  tree:add(m.opcode, buffer(0, 1))
  tree:add(m.echo, buffer(4, 1))
  tree:add(m.queue_pair, buffer(5, 3))
  tree:add(m.packet, buffer(9, 3))
  if code == 17 and buffer:len() >= 16 then
    tree:add(m.syndrome, buffer(12, 1))
  end
  info.cols.info = (OPERATIONS[code] or code) .. ", queue pair " .. flow .. ", packet " .. packet
end

function telemetry.dissector(buffer, info, root)
  if buffer:len() < 8 or bit.rshift(buffer(0, 1):uint(), 4) ~= 1 then
    return 0
  end
  local contents, unit, length = bit.band(buffer(0, 1):uint(), 15), buffer(1, 1):uint(), buffer(2, 2):uint()
  if length < 8 or length > buffer:len() then
    return 0
  end
  info.cols.protocol = "weftline"
  local tree, at = root:add(telemetry, buffer(0, length)), 8
  tree:add(m.int, buffer(0, 1))
  tree:add(m.pint, buffer(0, 1))
  tree:add(m.timestamp, buffer(0, 1))
  tree:add(m.length, buffer(2, 2))
  tree:add(m.port, buffer(4, 2))
  if bit.band(contents, 4) ~= 0 and at + 8 <= length then
    tree:add(m.sent, buffer(at, 8))
    at = at + 8
  end
  if bit.band(contents, 1) ~= 0 then
    -- 15 hops stand for more, too.
    local hops, records = bit.rshift(buffer(6, 1):uint(), 4), math.floor((length - at) / 8)
    local overwritten = bit.band(contents, 8) ~= 0 or hops > records
    hops = math.max(hops, records)
    tree:add(m.overwritten, buffer(0, 1), overwritten and 1 or 0)
    tree:add(m.hops, buffer(6, 1), hops)
    tree:add(m.path, buffer(6, 2), bit.band(buffer(6, 2):uint(), 0xfff))
    int_records(tree, buffer, at, records, unit, overwritten)
    if overwritten then
      local more = hops >= 15 and " or more" or ""
      tree:append_text(": INT, " .. hops .. more .. " hops, " .. records .. " records, overwritten")
    else
      tree:append_text(": INT, " .. hops .. " hops")
    end
  elseif bit.band(contents, 2) ~= 0 then
    tree:add(m.looped, buffer(6, 1))
    tree:add(m.hops, buffer(7, 1))
    if at < length then
      tree:add(m.digest, buffer(at, length - at))
    end
    tree:append_text(": PINT, " .. buffer(7, 1):uint() .. " hops")
  end
  if length < buffer:len() then
    rdma(tree, buffer(length), info)
  end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(TELEMETRY_PORT, telemetry)

-- pHost, pFabric, Fastpass, NDP, Homa ---------------------------------------------------------------------------------

local SCHEMES = names(0, "other", "pHost", "pFabric", "Fastpass", "NDP", "Homa")
local KINDS = names(
  0, "data", "acknowledgement", "request", "token", "schedule", "first half of a schedule",
  "second half of a schedule", "nothing more wanted", "probe", "flow known", "trimmed data", "returned data",
  "refusal", "pull", "grant", "packets requested again", "sender busy", "acknowledgement requested"
)
local DATA, ACKNOWLEDGEMENT, REQUEST, TOKEN, SCHEDULE, FIRST_HALF, SECOND_HALF, PROBE = 0, 1, 2, 3, 4, 5, 6, 8
local KNOWN, TRIMMED, RETURNED, REFUSAL, PULL, GRANT, RESEND, NEED_ACK = 9, 10, 11, 12, 13, 14, 15, 17
local packet = Proto("weftline.packet", "weftline packet")
local p = declare(packet, {
  { "uint8", "scheme", "Scheme", SCHEMES },
  { "uint8", "kind", "Kind", KINDS },
  { "flag", "last", "Last of its flow", 1 },
  { "flag", "echo", "Echoes a mark", 2 },
  { "uint8", "length", "Length" },
  { "uint32", "flow", "Flow" },
  { "uint32", "packets", "Packets of the flow" },
  { "uint32", "number", "Number of the packet" },
  { "uint32", "token", "Number of the token" },
  { "uint32", "missing", "Packets missing" },
  { "uint64", "deadline", "Deadline, in ns" },
  { "uint64", "byte", "First byte, or next byte expected" },
  { "uint32", "urgency", "What queues order by" },
  { "uint32", "own", "Number of the transport's own" },
  { "uint32", "timeslots", "Timeslots requested so far" },
  { "uint32", "given", "Timeslots given so far" },
  { "uint32", "new_request", "The request was new", names(0, "no", "yes") },
  { "uint32", "destination", "Destination" },
  { "uint32", "epoch", "Epoch (32 bits)" },
  { "uint32", "slot_flow", "Flow of a timeslot" },
  { "uint32", "slot_path", "Path of a timeslot" },
  { "uint32", "pull", "Pull number" },
  { "uint32", "in_order", "Packets in order" },
  { "uint32", "pulls", "It pulls", names(0, "no", "yes") },
  { "uint64", "message_bytes", "Bytes of the message" },
  { "uint32", "granted", "Packets that may be sent" },
  { "uint32", "level", "Priority level" },
  { "uint32", "first", "First packet requested" },
  { "uint32", "past_last", "Packet after the last one requested" },
  { "uint24", "round", "Round of requests" },
})

-- What follows the common part, by scheme and kind: fields, each with its bytes.
local phost_data = { { p.packets, 4 }, { p.number, 4 }, { p.token, 4 } }
local fastpass_data = { { p.packets, 4 }, { p.number, 4 } }
local pfabric_data = { { p.byte, 8 }, { p.urgency, 4 } }
local ndp_data = { { p.packets, 4 }, { p.number, 4 } }
local ndp_answer = { { p.pull, 4 }, { p.in_order, 4 }, { p.number, 4 }, { p.pulls, 4 } }
local other = { { p.byte, 8 }, { p.own, 4 } }
local BODIES = {
  [0] = { [DATA] = other, [ACKNOWLEDGEMENT] = other, [REQUEST] = other },
  [1] = {
    [DATA] = phost_data,
    [ACKNOWLEDGEMENT] = phost_data,
    [REQUEST] = { { p.packets, 4 }, { p.deadline, 8 } },
    [TOKEN] = { { p.number, 4 }, { p.token, 4 }, { p.missing, 4 } },
  },
  [2] = {
    [DATA] = pfabric_data,
    [PROBE] = pfabric_data,
    [ACKNOWLEDGEMENT] = { { p.byte, 8 }, { p.number, 4 } },
  },
  [3] = {
    [DATA] = fastpass_data,
    [ACKNOWLEDGEMENT] = fastpass_data,
    [REQUEST] = { { p.timeslots, 4 }, { p.destination, 4 }, { p.deadline, 8 } },
    [KNOWN] = { { p.given, 4 }, { p.new_request, 4 } },
  },
  [4] = {
    [DATA] = ndp_data,
    [TRIMMED] = ndp_data,
    [RETURNED] = ndp_data,
    [ACKNOWLEDGEMENT] = ndp_answer,
    [REFUSAL] = ndp_answer,
    [PULL] = { { p.pull, 4 }, { p.in_order, 4 } },
  },
  [5] = {
    [DATA] = { { p.message_bytes, 8 }, { p.number, 4 } },
    [GRANT] = { { p.granted, 4 }, { p.level, 4 } },
    [RESEND] = { { p.first, 4 }, { p.past_last, 4 }, { p.round, 3 }, { p.level, 1 } },
    [NEED_ACK] = { { p.message_bytes, 8 } },
  },
}

local function schedule(tree, body, kind)
  if body:len() < 36 then
    return
  end
  tree:add(p.epoch, body(0, 4))
  local flows = kind == SCHEDULE and 8 or 4
  for place = 0, 7 do
    local word = body(4 + 4 * place, 4)
    if word:uint() ~= NONE then
      tree:add(place < flows and p.slot_flow or p.slot_path, word)
    end
  end
end

function packet.dissector(buffer, info, root)
  if buffer:len() < 8 or bit.rshift(buffer(0, 1):uint(), 4) ~= 1 then
    return 0
  end
  local scheme, kind, length = bit.band(buffer(0, 1):uint(), 15), buffer(1, 1):uint(), buffer(3, 1):uint()
  if length < 8 or length > buffer:len() or SCHEMES[scheme] == nil then
    return 0
  end
  local tree = root:add(packet, buffer(0, length))
  tree:add(p.scheme, buffer(0, 1), scheme)
  tree:add(p.kind, buffer(1, 1))
  tree:add(p.last, buffer(2, 1))
  tree:add(p.echo, buffer(2, 1))
  tree:add(p.length, buffer(3, 1))
  local flow = buffer(4, 4)
  if flow:uint() ~= NONE then
    tree:add(p.flow, flow)
  end
  if kind == SCHEDULE or kind == FIRST_HALF or kind == SECOND_HALF then
    schedule(tree, buffer(8, length - 8), kind)
  end
  local at = 8
  for _, field in ipairs(BODIES[scheme][kind] or {}) do
    if at + field[2] <= length then
      tree:add(field[1], buffer(at, field[2]))
    end
    at = at + field[2]
  end
  local said = SCHEMES[scheme] .. " " .. (KINDS[kind] or kind)
  tree:append_text(": " .. said)
  info.cols.protocol = "weftline"
  info.cols.info = said .. (flow:uint() ~= NONE and ", flow " .. flow:uint() or "")
  return buffer:len()
end

DissectorTable.get("udp.port"):add(PACKET_PORT, packet)

-- Hosts of the simulator in the lab -----------------------------------------------------------------------------------

local LAB_FIELDS, LAB_VERSION, LAB_RECORD = 48, 1, 16
local LAB_KINDS = names(0, "data", "acknowledgement", "negative acknowledgement", "pause", "resume", "probe", "control")
local lab = Proto("weftline.lab", "weftline packet of the lab")
local l = declare(lab, {
  { "uint64", "first", "First byte, next byte expected, or numbers of the transport" },
  { "uint64", "sent", "Sent, in ps" },
  { "uint32", "flow", "Flow" },
  { "uint32", "sender", "The sender's own number" },
  { "uint32", "label", "Label, by which paths are chosen" },
  { "uint32", "aux", "Bytes left, number of the packet, or another number" },
  { "uint16", "payload", "Bytes of payload" },
  { "uint16", "group", "Group" },
  { "uint16", "size", "Bytes of the simulated packet" },
  { "uint8", "kind", "Kind", LAB_KINDS },
  { "uint8", "class", "Class" },
  { "uint8", "wire_class", "Class from the first switch on" },
  { "flag", "marked", "Congestion experienced, or its echo", 1 },
  { "flag", "last", "Last of its flow", 2 },
  { "flag", "telemetry", "Telemetry is written into it", 4 },
  { "flag", "not_capable", "Not ECN-capable", 8 },
  { "uint8", "code", "Signal of its transport" },
  { "uint8", "transport", "Transport of the host" },
  { "uint8", "profile", "Settings of the transport" },
  { "flag", "trimmable", "Payload may be cut off", 1 },
  { "flag", "trimmed", "Payload was cut off", 2 },
  { "flag", "returned", "Returns to its source", 4 },
  { "uint8", "records", "Records" },
  { "uint32", "source", "Source, if it is not that of the address" },
  { "bytes", "record", "Record" },
})
local LAB_PLACES = {
  { l.first, 0, 8 }, { l.sent, 8, 8 }, { l.flow, 16, 4 }, { l.sender, 20, 4 }, { l.label, 24, 4 }, { l.aux, 28, 4 },
  { l.payload, 32, 2 }, { l.group, 34, 2 }, { l.size, 36, 2 }, { l.kind, 38, 1 }, { l.class, 39, 1 },
  { l.wire_class, 40, 1 }, { l.marked, 41, 1 }, { l.last, 41, 1 }, { l.telemetry, 41, 1 }, { l.not_capable, 41, 1 },
  { l.transport, 42, 1 }, { l.profile, 43, 1 }, { l.trimmable, 44, 1 }, { l.trimmed, 44, 1 }, { l.returned, 44, 1 },
  { l.records, 46, 1 },
}

function lab.dissector(buffer, info, root)
  if buffer:len() < LAB_FIELDS or buffer(45, 1):uint() ~= LAB_VERSION then
    return 0
  end
  local kind = LAB_KINDS[buffer(38, 1):uint()]
  if kind == nil then
    return 0
  end
  local tree = root:add(lab, buffer())
  for _, place in ipairs(LAB_PLACES) do
    tree:add(place[1], buffer(place[2], place[3]))
  end
  tree:add(l.code, buffer(41, 1), bit.rshift(buffer(41, 1):uint(), 4))
  local at = LAB_FIELDS
  if buffer(47, 1):uint() == 4 and at + 4 <= buffer:len() then
    tree:add(l.source, buffer(at, 4))
    at = at + 4
  end
  for _ = 1, buffer(46, 1):uint() do
    if at + LAB_RECORD <= buffer:len() then
      tree:add(l.record, buffer(at, LAB_RECORD))
    end
    at = at + LAB_RECORD
  end
  local said = kind .. ", flow " .. buffer(16, 4):uint() .. ", " .. tostring(buffer(0, 8):uint64())
  tree:append_text(": " .. said)
  info.cols.protocol = "weftline"
  info.cols.info = said
  return buffer:len()
end

DissectorTable.get("udp.port"):add(LAB_PORT, lab)
