#include "runtime/sweep/shared_bounds.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <type_traits>

#include <sys/mman.h>

namespace cudp {
namespace {

constexpr std::size_t kOffsetUnit = 16;  ///< offsets are multiples of this [bytes]
constexpr std::size_t kEntryLists = 1 << 12;
constexpr std::uint64_t kBoundsMark = 0x73646e756f622e31;  ///< "1.bounds"

/// A stored bound of the accountant. In memory it is followed by the text of its question, the
/// computation whose result it is.
struct BoundEntry {
  std::uint32_t next = 0;   ///< offset of the next entry of its list [kOffsetUnit bytes]; 0: none
  std::uint32_t bytes = 0;  ///< size of the question
  privacy::PrivacyBound bound;
};
static_assert(std::is_trivially_copyable_v<BoundEntry>);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

/// Start of the shared memory: a hash table. Entries whose questions have the same hash value are
/// in one list. An entry is complete before a list refers to it, and never changes afterwards.
struct SharedBounds::Table {
  const std::uint64_t mark = kBoundsMark;
  /// Offset of the first unused byte of the memory [kOffsetUnit bytes].
  std::atomic<std::uint32_t> end{sizeof(Table) / kOffsetUnit + 1};
  std::atomic<std::uint32_t> lists[kEntryLists] = {};  ///< offset of each list's first entry

  /// Returns the table in `memory`, a block of kBytes bytes: the existing one, or a new one if the
  /// memory is all zeros. Returns null if the memory contains anything else.
  static Table* in(void* memory) {
    std::uint64_t mark = 0;
    std::memcpy(&mark, memory, sizeof mark);
    if (mark == 0) return new (memory) Table;
    return mark == kBoundsMark ? static_cast<Table*>(memory) : nullptr;
  }
  std::atomic<std::uint32_t>& list_of(const std::string& question) {
    return lists[std::hash<std::string>{}(question) % kEntryLists];
  }
  std::byte* at(std::uint32_t offset) {
    return reinterpret_cast<std::byte*>(this) + kOffsetUnit * offset;
  }
};

SharedBounds::SharedBounds() {
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) table_ = Table::in(memory);
}

std::unique_ptr<SharedBounds> SharedBounds::in_file(int file) {
  void* const memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (Table* const table = Table::in(memory))
    return std::unique_ptr<SharedBounds>(new SharedBounds(table));
  ::munmap(memory, kBytes);
  return nullptr;
}

SharedBounds::~SharedBounds() {
  if (table_ != nullptr) ::munmap(table_, kBytes);
}

std::optional<privacy::PrivacyBound> SharedBounds::find(const std::string& question) const {
  if (table_ == nullptr) return std::nullopt;
  for (std::uint32_t offset = table_->list_of(question).load(); offset != 0;) {
    const std::byte* const at = table_->at(offset);
    BoundEntry entry;
    std::memcpy(&entry, at, sizeof entry);
    const std::string_view text(reinterpret_cast<const char*>(at + sizeof entry), entry.bytes);
    if (text == question) return entry.bound;
    offset = entry.next;
  }
  return std::nullopt;
}

void SharedBounds::add(const std::string& question, const privacy::PrivacyBound& bound) {
  if (table_ == nullptr) return;
  const std::size_t bytes = sizeof(BoundEntry) + question.size();
  const auto is_full = [&](std::uint32_t offset) { return kOffsetUnit * offset + bytes > kBytes; };
  if (is_full(table_->end.load())) return;
  const std::uint32_t offset =
      table_->end.fetch_add(static_cast<std::uint32_t>((bytes + kOffsetUnit - 1) / kOffsetUnit));
  if (is_full(offset)) return;
  std::byte* const at = table_->at(offset);
  std::memcpy(at + sizeof(BoundEntry), question.data(), question.size());
  std::atomic<std::uint32_t>& list = table_->list_of(question);
  BoundEntry entry{list.load(), static_cast<std::uint32_t>(question.size()), bound};
  do {
    std::memcpy(at, &entry, sizeof entry);
  } while (!list.compare_exchange_weak(entry.next, offset));
}

}  // namespace cudp
