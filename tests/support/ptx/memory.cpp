#include "tests/support/ptx/memory.hpp"

#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

namespace cudp::ptx {

namespace {
constexpr u64 kMostReserved = u64{1} << 42;  // a sanitizer leaves fewer addresses
constexpr u64 kApart = 512;                  // bytes between allocations
constexpr u64 kLongRange = 1 << 16;          // bytes from which on clear() gives pages back
}  // namespace

const char* race(Access kind, bool with_a_write, Conflict conflict) {
  const bool reads = kind == Access::read;
  if (conflict == Conflict::same_block) {
    if (!with_a_write) return "race: a write after another thread's read, without a barrier";
    return reads ? "race: a read after another thread's write, without a barrier"
                 : "race: a write after another thread's write, without a barrier";
  }
  if (conflict == Conflict::other_block) {
    if (!with_a_write) return "race: a write of what another block of the launch reads";
    return reads ? "race: a read of what another block of the launch writes"
                 : "race: two blocks of the launch write";
  }
  return with_a_write ? "race: nothing orders it after the operation that wrote"
                      : "race: nothing orders it after the operation that read";
}

void clear(u8* data, u64 bytes) {
  const auto address = reinterpret_cast<u64>(data);
  const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
  const u64 begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  if (bytes < kLongRange || madvise(data + (begin - address), end - begin, MADV_DONTNEED) != 0) {
    std::memset(data, 0, bytes);
    return;
  }
  std::memset(data, 0, begin - address);
  std::memset(data + (end - address), 0, address + bytes - end);
}

void Shadow::set_in_flight(u64 at, bool in_flight) {
  for (u64 word = at / 4; word < at / 4 + 4; ++word) words_[word].in_flight = in_flight;
}

void Shadow::spread(u64 at) {
  Word& stretch = stretches_[at / kStretch];
  Word* const words = &words_[at / kStretch * (kStretch / 4)];
  stretch.counts = true;  // as it does in the words that are copies of it
  std::fill_n(words, kStretch / 4, stretch);
}

const char* Shadow::touch_range(u64 from, u64 to, Access kind, const Toucher& who,
                                const HappensBefore& order, u64& at) {
  for (at = from; at < to;) {
    const u64 end = std::min(at / kStretch * kStretch + kStretch, bytes_);
    Word& stretch = stretches_[at / kStretch];
    if (at % kStretch == 0 && to >= end && !stretch.counts) {
      if (kind == Access::read && !stretch.written) return "a read of memory that nobody wrote";
      if (const char* wrong = ptx::touch<false>(stretch, kind, who, order)) return wrong;
      at = end;
      continue;
    }
    const u32 part = at % 4 == 0 && to - at >= 4 ? 4 : 1;
    if (const char* wrong = touch<false>(at, part, kind, who, order)) return wrong;
    at += part;
  }
  return nullptr;
}

template <bool shared>
const char* Shadow::touch_unusual(Word& w, u64 at, Access kind, Toucher who,
                                  const HappensBefore& order) {
  if (!shared && !w.counts) spread(at);
  if (w.outside) return "an access between variables";
  if (w.in_flight) return "memory is used while a copy to it is on its way";
  if (w.in_parts) return touch_parts<shared>(at, 4, kind, who, order);
  if (kind != Access::write && !w.written) return "a read of memory that nobody wrote";
  return ptx::touch<shared>(w, kind, who, order);
}

template <bool shared>
const char* Shadow::touch_parts(u64 at, u32 bytes, Access kind, Toucher who,
                                const HappensBefore& order) {
  Word& w = words_[at / 4];
  if (!shared && !w.counts) spread(at);
  if (w.outside) return "an access between variables";
  if (w.in_flight) return "memory is used while a copy to it is on its way";
  if (!w.in_parts) {
    parts_.push_back({w, w, w, w});
    w.in_parts = true;
    w.writer.interval = static_cast<u32>(parts_.size() - 1);
  }
  for (u64 byte = at % 4; byte < at % 4 + bytes; ++byte) {
    Word& part = parts_[w.writer.interval][byte];
    if (kind != Access::write && !part.written) return "a read of memory that nobody wrote";
    if (const char* wrong = ptx::touch<shared>(part, kind, who, order)) return wrong;
  }
  return nullptr;
}

template const char* Shadow::touch_unusual<false>(Word&, u64, Access, Toucher,
                                                  const HappensBefore&);
template const char* Shadow::touch_unusual<true>(Word&, u64, Access, Toucher, const HappensBefore&);
template const char* Shadow::touch_parts<false>(u64, u32, Access, Toucher, const HappensBefore&);
template const char* Shadow::touch_parts<true>(u64, u32, Access, Toucher, const HappensBefore&);

DeviceMemory::~DeviceMemory() {
  if (reserved_ != nullptr) munmap(reserved_, reserved_bytes_);
}

u64 DeviceMemory::allocate(u64 bytes) {
  if (reserved_ == nullptr) {  // addresses that the process itself can neither use nor get
    void* p = MAP_FAILED;
    for (reserved_bytes_ = 2 * kMostReserved; p == MAP_FAILED && reserved_bytes_ > capacity_;) {
      reserved_bytes_ /= 2;
      p = mmap(nullptr, reserved_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
               0);
    }
    if (p == MAP_FAILED) throw Fault("ptx: no addresses are left for device memory");
    reserved_ = p;
    next_ = (reinterpret_cast<u64>(p) + kApart + 255) / 256 * 256;
  }
  if (bytes > capacity_ - in_use_) return 0;
  const u64 address = next_;
  next_ = (next_ + bytes + kApart + 255) / 256 * 256;
  if (next_ > reinterpret_cast<u64>(reserved_) + reserved_bytes_)
    throw Fault("ptx: no addresses are left for device memory");
  Allocation& a = allocations_[address];
  a.address = address;
  a.bytes = bytes;
  a.data.reset(bytes);
  a.shadow.reset_stretches(bytes);
  in_use_ += bytes;
  return address;
}

bool DeviceMemory::release(u64 address) {
  const auto at = allocations_.find(address);
  if (at == allocations_.end()) return false;
  in_use_ -= at->second.bytes;
  recent_.fill(nullptr);
  allocations_.erase(at);
  return true;
}

Allocation* DeviceMemory::find_slowly(u64 address) {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return nullptr;
  --at;
  if (address - at->first >= at->second.bytes) return nullptr;
  return recent_[oldest_++ % recent_.size()] = &at->second;
}

u8* DeviceMemory::range(u64 address, u64 bytes, Access kind, const Toucher& who,
                        const HappensBefore& order, const std::string& what) {
  if (bytes == 0) return nullptr;
  Allocation* const a = find(address);
  if (a == nullptr || bytes > a->bytes - (address - a->address))
    throw Fault("ptx: " + what + " outside of device memory");
  const u64 from = address - a->address;
  u64 at = from;
  if (const char* wrong = a->shadow.touch_range(from, from + bytes, kind, who, order, at))
    throw Fault("ptx: " + what + ", " + std::to_string(at) + " bytes into an allocation of " +
                std::to_string(a->bytes) + ": " + wrong);
  return a->data.data() + from;
}

}  // namespace cudp::ptx
