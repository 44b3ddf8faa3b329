#include "tests/support/ptx/memory.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace cudp::ptx {

namespace {
constexpr u64 kReserved = u64{1} << 42;
constexpr u64 kApart = 512;  // bytes between allocations
}  // namespace

DeviceMemory::~DeviceMemory() {
  if (reserved_ != nullptr) munmap(reserved_, kReserved);
}

u64 DeviceMemory::allocate(u64 bytes) {
  if (reserved_ == nullptr) {  // addresses that the process itself can neither use nor get
    void* const p = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1, 0);
    if (p == MAP_FAILED) throw Fault("ptx: no addresses are left for device memory");
    reserved_ = p;
    next_ = (reinterpret_cast<u64>(p) + kApart + 255) / 256 * 256;
  }
  if (bytes > capacity_ - in_use_) return 0;
  const u64 address = next_;
  next_ = (next_ + bytes + kApart + 255) / 256 * 256;
  if (next_ > reinterpret_cast<u64>(reserved_) + kReserved)
    throw Fault("ptx: no addresses are left for device memory");
  Allocation& a = allocations_[address];
  a.address = address;
  a.bytes = bytes;
  a.data.assign(bytes + 16, 0xff);
  a.words.resize(bytes / 4 + 1);
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

u8* DeviceMemory::range(u64 address, u64 bytes, Access kind, const Toucher& who, const Order& order,
                        const std::string& what) {
  if (bytes == 0) return nullptr;
  Allocation* const a = find(address);
  if (a == nullptr || bytes > a->bytes - (address - a->address))
    throw Fault("ptx: " + what + " outside of device memory");
  const u64 from = address - a->address;
  for (u64 at = from; at < from + bytes;) {
    const auto part = static_cast<u32>(std::min(4 - at % 4, from + bytes - at));
    const auto mask = static_cast<u8>(((1u << part) - 1) << (at % 4));
    Word& w = a->words[at / 4];
    if (kind == Access::read && (w.written & mask) != mask)
      throw Fault("ptx: " + what + " of memory that nobody wrote, " + std::to_string(at) +
                  " bytes into an allocation of " + std::to_string(a->bytes));
    if (const char* wrong = touch<false>(w, kind, mask, who, order))
      throw Fault("ptx: " + what + ": " + wrong);
    at += part;
  }
  return a->data.data() + from;
}

}  // namespace cudp::ptx
