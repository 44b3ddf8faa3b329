#pragma once
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace cudp {

/// Memory for arrays with one element per row of a data set. If the features of the data set are in
/// a file, large arrays are in memory-mapped files on the same disk. The operating system can then
/// free the arrays' memory by writing it to the disk. These files have no name, and only their
/// owner can read them.
class RowMemory {
 public:
  /// Makes an object that allocates in memory of this process, never in files.
  RowMemory() = default;
  /// Makes an object that allocates in memory-mapped files on the disk of `folder`. Arrays smaller
  /// than kMinBytes are in memory of this process.
  explicit RowMemory(const std::filesystem::path& folder)
      : folder_(std::make_shared<const std::filesystem::path>(folder)) {}

  static constexpr std::size_t kMinBytes = std::size_t{1} << 16;

  bool in_file(std::size_t bytes) const { return folder_ != nullptr && bytes >= kMinBytes; }
  /// Returns memory for `bytes` bytes, aligned for numbers of any type. Throws Error if the disk is
  /// full.
  void* allocate(std::size_t bytes) const;
  void release(void* memory, std::size_t bytes) const;

  bool operator==(const RowMemory&) const = default;

 private:
  std::shared_ptr<const std::filesystem::path> folder_;  // null: memory of this process
};

/// Allocator of the C++ library that gets its memory from a RowMemory.
template <class T>
class RowAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  RowAllocator() = default;
  explicit RowAllocator(RowMemory memory) : memory_(std::move(memory)) {}
  template <class U>
  RowAllocator(const RowAllocator<U>& other) : memory_(other.memory()) {}

  T* allocate(std::size_t n) { return static_cast<T*>(memory_.allocate(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t n) { memory_.release(memory, n * sizeof(T)); }

  const RowMemory& memory() const { return memory_; }
  template <class U>
  bool operator==(const RowAllocator<U>& other) const {
    return memory_ == other.memory();
  }

 private:
  RowMemory memory_;
};

/// Array with one element per row of a data set, in memory or in a memory-mapped file (RowMemory).
template <class T>
using RowArray = std::vector<T, RowAllocator<T>>;

/// Returns a copy of an array with one element per row. The copy is in memory of this process, even
/// if the array is in a memory-mapped file.
template <class T>
std::vector<T> copy_of(const RowArray<T>& array) {
  return {array.begin(), array.end()};
}

template <class T>
bool operator==(const RowArray<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace cudp
