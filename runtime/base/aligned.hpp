#pragma once
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

namespace cudp {

/// Array of fixed size at a 64-byte boundary (one cache line, one AVX-512 register), filled with
/// zeros.
template <class T>
class AlignedVector {
 public:
  AlignedVector() = default;
  explicit AlignedVector(std::size_t n) : size_(n) {
    if (n == 0) return;
    const std::size_t bytes = (n * sizeof(T) + 63) / 64 * 64;
    data_.reset(static_cast<T*>(::operator new[](bytes, std::align_val_t{64})));
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace cudp
