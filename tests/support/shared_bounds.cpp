#include "tests/support/shared_bounds.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <type_traits>

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cudp {
namespace {

constexpr std::size_t kBytes = std::size_t{64} << 20;  // occupied as they are written
constexpr std::size_t kUnit = 16;                      // offsets are in units of so many bytes
constexpr std::size_t kLists = 1 << 12;
constexpr std::uint64_t kMark = 0x73646e756f622e31;          // "1.bounds"
constexpr const char* kFileVariable = "CUDP_SHARED_BOUNDS";  // number of the open file

/// A bound in the memory; its question follows it.
struct Entry {
  std::uint32_t next = 0;   ///< offset of the next entry of its list; 0: none
  std::uint32_t bytes = 0;  ///< of the question
  privacy::PrivacyBound bound;
};
static_assert(std::is_trivially_copyable_v<Entry>);

}  // namespace

/// The beginning of the memory: lists of entries, by the hashes of their questions. An entry is
/// written before its list leads to it, and never changes afterwards.
struct SharedBounds::Table {
  const std::uint64_t mark = kMark;
  std::atomic<std::uint32_t> end{sizeof(Table) / kUnit + 1};  ///< offset of unused memory
  std::atomic<std::uint32_t> lists[kLists] = {};              ///< offset of each list's first entry

  std::atomic<std::uint32_t>& list_of(const std::string& question) {
    return lists[std::hash<std::string>{}(question) % kLists];
  }
  std::byte* at(std::uint32_t offset) {
    return reinterpret_cast<std::byte*>(this) + kUnit * offset;
  }
};

SharedBounds::SharedBounds() : file_(memfd_create("bounds", 0)) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free);
  if (file_ < 0 || ftruncate(file_, kBytes) != 0) return;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (memory != MAP_FAILED) table_ = new (memory) Table;
}

SharedBounds::~SharedBounds() {
  if (table_ != nullptr) munmap(table_, kBytes);
  if (file_ >= 0) close(file_);
}

void SharedBounds::export_file() const {
  if (table_ != nullptr) setenv(kFileVariable, std::to_string(file_).c_str(), 1);
}

std::unique_ptr<SharedBounds> SharedBounds::inherit() {
  const char* const number = std::getenv(kFileVariable);
  if (number == nullptr) return nullptr;
  const int file = std::atoi(number);
  struct stat status = {};
  // A program in between may have closed the file, or opened another one with this number.
  if (fstat(file, &status) != 0 || status.st_size != kBytes) return nullptr;
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const table = static_cast<Table*>(memory);
  if (table->mark == kMark) return std::unique_ptr<SharedBounds>(new SharedBounds(table));
  munmap(memory, kBytes);
  return nullptr;
}

std::optional<privacy::PrivacyBound> SharedBounds::find(const std::string& question) const {
  if (table_ == nullptr) return std::nullopt;
  for (std::uint32_t offset = table_->list_of(question).load(); offset != 0;) {
    const std::byte* const at = table_->at(offset);
    Entry entry;
    std::memcpy(&entry, at, sizeof entry);
    const std::string_view text(reinterpret_cast<const char*>(at + sizeof entry), entry.bytes);
    if (text == question) return entry.bound;
    offset = entry.next;
  }
  return std::nullopt;
}

void SharedBounds::add(const std::string& question, const privacy::PrivacyBound& bound) {
  if (table_ == nullptr) return;
  const std::size_t bytes = sizeof(Entry) + question.size();
  const std::uint32_t offset =
      table_->end.fetch_add(static_cast<std::uint32_t>((bytes + kUnit - 1) / kUnit));
  if (kUnit * offset + bytes > kBytes) return;
  std::byte* const at = table_->at(offset);
  std::memcpy(at + sizeof(Entry), question.data(), question.size());
  std::atomic<std::uint32_t>& list = table_->list_of(question);
  Entry entry{list.load(), static_cast<std::uint32_t>(question.size()), bound};
  do {
    std::memcpy(at, &entry, sizeof entry);
  } while (!list.compare_exchange_weak(entry.next, offset));
}

void share_bounds_of_started_processes() {
  static auto* const bounds = new SharedBounds;  // as long as the process
  bounds->export_file();
  pthread_atfork(nullptr, nullptr, [] { privacy::use_bound_store(bounds); });
}

}  // namespace cudp
