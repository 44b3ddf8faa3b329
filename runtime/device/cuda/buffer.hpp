#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device/cuda/gpu.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Device memory for n elements. It is not initialised: write to it, or call clear(), before it is
/// read.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Gpu& gpu, std::size_t n)
      : gpu_(&gpu),
        data_(n > 0 ? static_cast<T*>(gpu.allocate(n * sizeof(T))) : nullptr),
        size_(n) {}
  Buffer(Buffer&& o) noexcept
      : gpu_(o.gpu_), data_(std::exchange(o.data_, nullptr)), size_(std::exchange(o.size_, 0)) {}
  Buffer& operator=(Buffer&& o) noexcept {
    std::swap(gpu_, o.gpu_);
    std::swap(data_, o.data_);
    std::swap(size_, o.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) gpu_->release(data_);
  }

  /// Returns the device address of the first element; null if the size is 0.
  T* get() const { return data_; }
  std::size_t size() const { return size_; }

  void clear() {
    if (size_ > 0) gpu_->clear(data_, size_ * sizeof(T));
  }
  /// For tests: overwrites the memory with a value that the test chooses, to find code that reads
  /// memory before it writes it. Does nothing otherwise.
  void fill_scratch() { fill_scratch(0, size_); }
  void fill_scratch(std::size_t at, std::size_t n) {
    if (n > 0) gpu_->fill_scratch(data_ + at, n * sizeof(T));
  }
  void upload(std::span<const T> from, std::size_t at = 0) {
    if (!from.empty()) gpu_->upload(data_ + at, from.data(), from.size() * sizeof(T));
  }
  /// Returns a host copy of n elements, from index `at` on. Waits for the device.
  std::vector<T> download(std::size_t n, std::size_t at = 0) const {
    std::vector<T> to(n);
    if (n > 0) gpu_->download(to.data(), data_ + at, n * sizeof(T));
    return to;
  }
  std::vector<T> download() const { return download(size_); }

 private:
  Gpu* gpu_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Host memory for n elements that the device can read directly (pinned memory).
template <class T>
class PinnedBuffer {
 public:
  PinnedBuffer(Gpu& gpu, std::size_t n)
      : gpu_(gpu), data_(static_cast<T*>(gpu.allocate_pinned(n * sizeof(T)))), size_(n) {}
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer() { gpu_.release_pinned(data_); }

  T* get() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Gpu& gpu_;
  T* data_;
  std::size_t size_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
