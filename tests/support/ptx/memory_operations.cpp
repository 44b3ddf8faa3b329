// Loads, stores, atomics and copies. Every access is checked: aligned, inside of one allocation or
// variable, of memory that somebody wrote, and ordered after those that it must not race with.
#include "tests/support/ptx/operations.hpp"

namespace cudp::ptx {

namespace {

enum class Space { global, shared, generic };

std::string bytes_at(u32 bytes, u64 at) {
  return ", " + std::to_string(bytes) + " bytes at " + std::to_string(at);
}

/// The bytes of a load of which an instruction uses only some.
template <bool shared>
const char* touch_used(Shadow& shadow, u64 at, u32 bytes, u32 used, Toucher who,
                       const HappensBefore& order) {
  for (u32 k = 0; k < bytes; ++k) {
    if ((used >> k & 1) == 0) continue;
    const bool word = (at + k) % 4 == 0 && (used >> k & 15) == 15 && bytes - k >= 4;
    if (const char* wrong = shadow.touch<shared>(at + k, word ? 4 : 1, Access::read, who, order))
      return wrong;
    if (word) k += 3;
  }
  return nullptr;
}

/// Finds the places that the lanes of one instruction access.
template <Space space>
class Accessor {
 public:
  Accessor(Warp& w, u32 bytes, Access kind, u32 used = ~0u)
      : w_(w),
        memory_(*w.block->memory),
        order_(*w.block->order),
        who_(w.toucher(0)),
        bytes_(bytes),
        used_(used),
        kind_(kind) {
    order_.ended = w.kernel->has_named_barriers ? w.ended.data() : nullptr;
    const bool is_early = w.block->is_dependent && (w.live & ~w.has_waited) != 0;
    order_.unknown_from = is_early ? order_.operation_before : ~0u;
  }

  u8* place(u32 lane, u64 address) {
    // A value of its own stays in the processor's registers.
    Toucher who = who_;
    who.thread = static_cast<u16>(who.thread + lane);
    if constexpr (space == Space::shared) return shared(lane, address, who);
    if constexpr (space == Space::generic)
      if (address >= kSharedWindow) return shared(lane, address - kSharedWindow, who);
    return global(lane, address, who);
  }

 private:
  [[gnu::always_inline]] u8* global(u32 lane, u64 address, Toucher who) {
    if (allocation_ == nullptr || address - allocation_->address >= allocation_->bytes) {
      allocation_ = memory_.find(address);
      if (allocation_ == nullptr) fault(w_, lane, "access outside of device memory");
    }
    const u64 at = address - allocation_->address;
    if ((address & (bytes_ - 1)) != 0)
      fault(w_, lane, "misaligned access to global memory" + bytes_at(bytes_, at));
    if (bytes_ > allocation_->bytes - at)
      fault(w_, lane,
            "access past the end of an allocation of " + std::to_string(allocation_->bytes) +
                " bytes" + bytes_at(bytes_, at));
    if (const char* wrong = touch<false>(allocation_->shadow, at, who)) [[unlikely]]
      fault(w_, lane, std::string(wrong) + "; global memory" + bytes_at(bytes_, at));
    return allocation_->data.data() + at;
  }
  [[gnu::always_inline]] u8* shared(u32 lane, u64 at, Toucher who) {
    Block& b = *w_.block;
    if ((at & (bytes_ - 1)) != 0)
      fault(w_, lane, "misaligned access to shared memory" + bytes_at(bytes_, at));
    if (at > b.shared.size() || bytes_ > b.shared.size() - at)
      fault(w_, lane, "access past the end of shared memory" + bytes_at(bytes_, at));
    if (const char* wrong = touch<true>(b.shadow, at, who)) [[unlikely]]
      fault(w_, lane, std::string(wrong) + "; shared memory" + bytes_at(bytes_, at));
    return b.shared.data() + at;
  }
  template <bool is_shared>
  [[gnu::always_inline]] const char* touch(Shadow& shadow, u64 at, Toucher who) {
    if (used_ != ~0u) [[unlikely]]
      return touch_used<is_shared>(shadow, at, bytes_, used_, who, order_);
    return shadow.touch<is_shared>(at, bytes_, kind_, who, order_);
  }

  Warp& w_;
  DeviceMemory& memory_;
  const HappensBefore& order_;
  const Toucher who_;  ///< lane 0
  u32 bytes_, used_;
  Access kind_;
  Allocation* allocation_ = nullptr;
};

/// Addresses are those of s[0] with the offset added. Those of shared memory have 32 bits.
template <Space space>
class Addresses {
 public:
  Addresses(const Warp& w, const Instruction& i)
      : row_(w.row(i.s[0])), offset_(i.offset), eight_(i.s[0].width == 8) {}
  u64 operator[](u32 lane) const {
    const u64 base = eight_ ? get<u64>(row_, lane) : get<u32>(row_, lane);
    const u64 address = base + static_cast<u64>(offset_);
    return space == Space::shared ? address & 0xffffffffu : address;
  }

 private:
  const u8* row_;
  i64 offset_;
  bool eight_;
};

template <class F>
[[gnu::always_inline]] inline void each_lane(u32 lanes, F&& f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<u32>(__builtin_ctz(lanes)));
}

template <class T, Space space, u32 elements>
[[gnu::always_inline]] inline void load_elements(Warp& w, const Instruction& i, u32 lanes) {
  Accessor<space> memory(w, sizeof(T) * elements, Access::read, i.used);
  const Addresses<space> address(w, i);
  std::array<u8*, elements> d;
  for (u32 k = 0; k < elements; ++k) d[k] = w.result(i.d[k]);
  const u8 width = i.d[0].width;
  // Of lanes in a row that read one place, the first and the last are enough to find what any of
  // them would: whoever wrote it is not both.
  const u8* from = nullptr;
  u64 at = 0;
  u32 last = kLanes;
  each_lane(lanes, [&](u32 l) {
    const u64 here = address[l];
    if (from != nullptr && here == at) {
      last = l;
    } else {
      if (last != kLanes) memory.place(last, at);
      last = kLanes;
      at = here;
      from = memory.place(l, at);
    }
    std::array<T, elements> values;
    std::memcpy(&values, from, sizeof values);
    for (u32 k = 0; k < elements; ++k) set_wide<T>(d[k], width, l, values[k]);
  });
  if (last != kLanes) memory.place(last, at);
}
template <class T, Space space>
void load(Warp& w, const Instruction& i, u32 lanes) {
  if (i.elements == 1) return load_elements<T, space, 1>(w, i, lanes);
  if (i.elements == 2) return load_elements<T, space, 2>(w, i, lanes);
  if constexpr (sizeof(T) < 8) load_elements<T, space, 4>(w, i, lanes);
}

template <class T, Space space, u32 elements>
[[gnu::always_inline]] inline void store_elements(Warp& w, const Instruction& i, u32 lanes) {
  Accessor<space> memory(w, sizeof(T) * elements, Access::write);
  const Addresses<space> address(w, i);
  std::array<const u8*, elements> s;
  for (u32 k = 0; k < elements; ++k) s[k] = w.row(i.s[1 + k]);
  each_lane(lanes, [&](u32 l) {
    std::array<T, elements> values;
    for (u32 k = 0; k < elements; ++k) values[k] = get_narrow<T>(s[k], i.s[1 + k].width, l);
    std::memcpy(memory.place(l, address[l]), &values, sizeof values);
  });
}
template <class T, Space space>
void store(Warp& w, const Instruction& i, u32 lanes) {
  if (i.elements == 1) return store_elements<T, space, 1>(w, i, lanes);
  if (i.elements == 2) return store_elements<T, space, 2>(w, i, lanes);
  if constexpr (sizeof(T) < 8) store_elements<T, space, 4>(w, i, lanes);
}

/// Parameters: an address is a place among them, and mostly a constant.
template <class T>
void load_parameter(Warp& w, const Instruction& i, u32 lanes) {
  const u32 bytes = static_cast<u32>(sizeof(T)) * i.elements;
  const auto value_at = [&](u64 at, u32 lane, u32 k) {
    if ((at & (bytes - 1)) != 0)
      fault(w, lane, "misaligned access to parameters" + bytes_at(bytes, at));
    if (at > w.kernel->parameter_bytes || bytes > w.kernel->parameter_bytes - at)
      fault(w, lane, "access past the end of the parameters" + bytes_at(bytes, at));
    T value;
    std::memcpy(&value, w.block->parameters + at + sizeof(T) * k, sizeof value);
    return value;
  };
  if (i.s[0].is_register()) {
    const Addresses<Space::generic> address(w, i);
    each_lane(lanes, [&](u32 l) {
      const u64 at = address[l];
      for (u32 k = 0; k < i.elements; ++k)
        set_wide<T>(w.result(i.d[k]), i.d[k].width, l, value_at(at, l, k));
    });
    return;
  }
  for (u32 k = 0; k < i.elements; ++k) {
    u8* const d = w.result(i.d[k]);
    const u8 width = i.d[k].width;
    const T value = value_at(static_cast<u64>(i.offset), static_cast<u32>(__builtin_ctz(lanes)), k);
    for_lanes(lanes, [&](u32 l) { set_wide<T>(d, width, l, value); });
  }
}

/// 8 x 8 matrices of 16 bits. Lane 8 m + r has the address of row r of matrix m; lane 4 g + t gets
/// two numbers of each: (g, 2 t), (g, 2 t + 1), or, transposed, (2 t, g), (2 t + 1, g).
template <u32 matrices, bool transposed>
void load_matrices(Warp& w, const Instruction& i, u32) {
  Accessor<Space::shared> memory(w, 16, Access::read);
  const Addresses<Space::shared> address(w, i);
  std::array<std::array<u16, 8>, 8 * matrices> rows;
  for (u32 l = 0; l < rows.size(); ++l)
    std::memcpy(&rows[l], memory.place(l, address[l]), sizeof rows[l]);
  for (u32 m = 0; m < matrices; ++m) {
    u8* const d = w.result(i.d[m]);
    const auto at = [&](u32 row, u32 column) { return u32{rows[8 * m + row][column]}; };
    for (u32 l = 0; l < kLanes; ++l) {
      const u32 g = l / 4, t = l % 4;
      set<u32>(d, l,
               transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16
                          : at(g, 2 * t) | at(g, 2 * t + 1) << 16);
    }
  }
}
template <u32 matrices>
void add_load_of_matrices(Table& t) {
  const std::string name = "ldmatrix.sync.aligned.m8n8.x" + std::to_string(matrices);
  const std::string shape = std::string(matrices, '4') + ":";
  t[name + ".shared.b16"] = {load_matrices<matrices, false>, Syntax::matrix_load, shape};
  t[name + ".trans.shared.b16"] = {load_matrices<matrices, true>, Syntax::matrix_load, shape};
}

template <class T, Space space>
void atomic_add(Warp& w, const Instruction& i, u32 lanes) {
  Accessor<space> memory(w, sizeof(T), Access::atomic);
  const Addresses<space> address(w, i);
  const u8* const s = w.row(i.s[1]);
  u8* const d = w.result(i.d[0]);
  each_lane(lanes, [&](u32 l) {
    u8* const p = memory.place(l, address[l]);
    T old;
    std::memcpy(&old, p, sizeof old);
    const T sum = old + get<T>(s, l);
    std::memcpy(p, &sum, sizeof sum);
    set<T>(d, l, old);
    if (space == Space::shared || (w.fenced >> l & 1) == 0) return;
    const Block& b = *w.block;
    if (!b.order->counted.add(address[l], w.toucher(l), b.grid.count())) return;
    w.counted = address[l];
    w.counted_lane = l;
  });
}

/// membar.gl: with a counter in global memory it orders blocks (CountedBlocks).
void fence(Warp& w, const Instruction&, u32 lanes) {
  w.fenced |= lanes;
  if (w.counted == 0 || (lanes >> w.counted_lane & 1) == 0) return;
  w.block->order->counted.order_last(w.counted, w.block->number);
  w.counted = 0;
}

void to_generic(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  for_lanes(lanes, [&](u32 l) { set<u64>(d, l, get<u64>(a, l) + kSharedWindow); });
}
void to_shared(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  each_lane(lanes, [&](u32 l) {
    if (get<u64>(a, l) < kSharedWindow)
      fault(w, l, "an address of global memory as one of shared memory");
    set<u64>(d, l, get<u64>(a, l) - kSharedWindow);
  });
}
void same_address(Warp& w, const Instruction& i, u32 lanes) {
  const u8* const a = w.row(i.s[0]);
  u8* const d = w.result(i.d[0]);
  each_lane(lanes, [&](u32 l) {
    if (get<u64>(a, l) >= kSharedWindow) fault(w, l, "an address of shared memory as a global one");
    set<u64>(d, l, get<u64>(a, l));
  });
}

/// What a copy to shared memory reads. `to` may be null.
void read_source(Warp& w, u32 lane, u64 from, u32 bytes, u8* to) {
  for (u32 at = 0; at < bytes;) {
    const u32 part = bytes - at == 16 ? 16 : bytes - at >= 4 ? 4 : 1;
    Accessor<Space::global> source(w, part, Access::read);
    const u8* const p = source.place(lane, from + at);
    if (to != nullptr) std::memcpy(to + at, p, part);
    at += part;
  }
}
/// 16 bytes of which some are read and the others become 0. They arrive as late as they may, so
/// that what is written to their source before then is found.
void copy(Warp& w, const Instruction& i, u32 lanes) {
  const Addresses<Space::shared> to(w, i);
  const u8* const from = w.row(i.s[1]);
  const u8* const taken = i.sources > 3 ? w.row(i.s[3]) : nullptr;
  Accessor<Space::shared> target(w, 16, Access::write);
  each_lane(lanes, [&](u32 l) {
    const u32 bytes = taken != nullptr ? get<u32>(taken, l) : 16;
    if (bytes > 16) fault(w, l, "a copy of more than 16 bytes");
    if (get<u64>(from, l) % 16 != 0) fault(w, l, "a copy from a misaligned place");
    read_source(w, l, get<u64>(from, l), bytes, nullptr);
    target.place(l, to[l]);
    w.block->shadow.set_in_flight(to[l], true);
    w.copies[l].push_back({static_cast<u32>(to[l]), bytes, get<u64>(from, l)});
  });
}
void wait_for_copies(Warp& w, const Instruction&, u32 lanes) {
  Accessor<Space::shared> target(w, 16, Access::write);
  each_lane(lanes, [&](u32 l) {
    for (const AsyncCopy& c : w.copies[l]) {
      w.block->shadow.set_in_flight(c.to, false);
      u8* const p = target.place(l, c.to);
      std::memset(p, 0, 16);
      read_source(w, l, c.from, c.bytes, p);
    }
    w.copies[l].clear();
  });
}

template <class T>
void add_type(Table& t, const std::string& type) {
  const char letter = kWideLetter<T>;
  const std::string one{letter, ':'}, other{':', letter};
  t["ld.param." + type] = {load_parameter<T>, Syntax::load, one};
  t["ld.global." + type] = {load<T, Space::global>, Syntax::load, one};
  t["ld.volatile.global." + type] = {load<T, Space::global>, Syntax::load, one};
  t["ld.shared." + type] = {load<T, Space::shared>, Syntax::load, one};
  t["ld." + type] = {load<T, Space::generic>, Syntax::load, one};
  t["st.global." + type] = {store<T, Space::global>, Syntax::store, other};
  t["st.shared." + type] = {store<T, Space::shared>, Syntax::store, other};
  t["st." + type] = {store<T, Space::generic>, Syntax::store, other};
}

}  // namespace

void add_memory(Table& t) {
  add_type<i8>(t, "s8");
  add_type<i16>(t, "s16");
  add_type<i32>(t, "s32");
  add_type<i64>(t, "s64");
  for (const char* type : {"u8", "b8"}) add_type<u8>(t, type);
  for (const char* type : {"u16", "b16"}) add_type<u16>(t, type);
  for (const char* type : {"u32", "b32"}) add_type<u32>(t, type);
  for (const char* type : {"u64", "b64"}) add_type<u64>(t, type);
  add_type<float>(t, "f32");
  add_type<double>(t, "f64");
  t["atom.global.add.u32"] = {atomic_add<u32, Space::global>, Syntax::atomic, "4:4"};
  t["atom.shared.add.u32"] = {atomic_add<u32, Space::shared>, Syntax::atomic, "4:4"};
  t["atom.global.add.u64"] = {atomic_add<u64, Space::global>, Syntax::atomic, "8:8"};
  t["membar.gl"] = {fence, Syntax::plain, ":"};
  t["cvta.to.global.u64"] = {same_address, Syntax::plain, "8:8"};
  t["cvta.shared.u64"] = {to_generic, Syntax::plain, "8:8"};
  t["cvta.to.shared.u64"] = {to_shared, Syntax::plain, "8:8"};
  add_load_of_matrices<1>(t);
  add_load_of_matrices<2>(t);
  add_load_of_matrices<4>(t);
  t["cp.async.cg.shared.global"] = {copy, Syntax::copy, ":"};
  t["cp.async.wait_all"] = {wait_for_copies, Syntax::plain, ":"};
}

}  // namespace cudp::ptx
