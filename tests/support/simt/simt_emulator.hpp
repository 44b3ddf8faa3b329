#pragma once
// Runs CUDA kernels without a GPU, for tests: one fiber a CUDA thread, 32-lane warps, several
// blocks in flight. Lanes, warps and blocks run in seeded random order, a warp as far ahead of the
// others as its barriers allow. What it reports, as std::runtime_error with file and line:
//   - __syncthreads that some threads of the block never reach, or reach at another line;
//   - named barriers that too few threads reach, or that threads reach with different counts;
//   - warp operations whose mask names a lane that is elsewhere, has exited or does not exist, or
//     leaves out the caller, and shuffles that read a lane outside their mask;
//   - writes past the end of shared memory (at the block's end; at once under ASan);
//   - asynchronous copies from or to places that are not multiples of 16 bytes, and those that are
//     still on their way when their thread ends;
//   - rows of ldmatrix that are not aligned to 16 bytes or not in shared memory;
//   - threads of a dependent launch that end without a wait for its primary;
//   - launch shapes that CUDA refuses, an empty grid among them.
// Shared memory starts as 0xff bytes (NaN, -1) in every block, and is no better aligned than asked
// for. A missing barrier changes results between seeds; under TSan it is reported as a data race,
// because fibers synchronise there only where CUDA threads do. It has no clock, no textures, no asm
// (tensor cores have twins, simt_tensor.hpp and simt_half.hpp), no cooperative launches.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#define __host__
#define __device__
#define __global__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
extern dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace simt {

struct Options {
  const char* name = "kernel";  ///< name in error messages
  unsigned seed = 1;            ///< seed of the random order of threads
  int blocks_in_flight = 4;
  std::size_t max_shared = 48 * 1024;  ///< bytes a block may use
  bool is_dependent = false;           ///< every thread must call wait_for_primary()
  /// Runs the primary of a dependent launch, or null: it has run already. It is called when all
  /// threads of the blocks in flight wait for it or for one another.
  std::function<void()> primary = nullptr;
};

/// A kernel bound to its arguments, to be called for each thread.
struct Body {
  void (*call)(const void* closure);
  const void* closure;
};
void run(const Body& body, dim3 grid, dim3 block, std::size_t smem_bytes, const Options& options);

/// Runs kernel<<<grid, block, smem_bytes>>>(args...) and returns when it is complete. Only one
/// launch may run at a time, and beside a dependent one its primary.
template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t smem_bytes,
            const Options& options, A... args) {
  const auto closure = [&] { kernel(args...); };
  run({[](const void* c) { (*static_cast<decltype(&closure)>(c))(); }, &closure}, grid, block,
      smem_bytes, options);
}

/// Waits until the primary of a dependent launch has run (griddepcontrol.wait).
void wait_for_primary(const char* file, int line);

enum class WarpOp { sync, shuffle, ballot, together };
void barrier(const char* file, int line);
/// Named barrier (bar.sync id, threads).
void named_barrier(int id, int threads, const char* file, int line);
std::uint64_t warp_op(WarpOp op, unsigned mask, std::uint64_t value, int source, const char* file,
                      int line);
/// Operation of a whole warp: called once all 32 lanes have reached the same line, with the pointer
/// that each lane passed. Returns null, or an error message.
using WholeWarp = const char* (*)(void* const (&lanes)[32]);
void together(WholeWarp work, void* mine, const char* file, int line);
unsigned lane_id();
void maybe_yield();  // lets another warp in, now and then
void fence();
/// Asynchronous copy of 16 bytes (cp.async). The bytes arrive only when the thread waits for them;
/// until then the destination has 0xff bytes, so that reads of its old contents are noticed.
void copy_async(void* to, const void* from, bool inside, const char* file, int line);
void wait_for_copies();
/// Reports an error if a row of `bytes` bytes is not aligned to its size, or not in shared memory.
void check_shared(const void* row, std::size_t bytes, const char* file, int line);
bool races_end_the_program();     // built with TSan
bool overruns_end_the_program();  // built with ASan
void* dynamic_shared();
void* static_shared_bytes(const void* key, std::size_t bytes, std::size_t align);

/// Returns a block's static shared array. There is one for each line of the program that declares
/// one; Key is the type of a lambda on that line.
template <class Array, class Key>
Array& static_shared(Key) {
  static const char id = 0;
  return *static_cast<Array*>(static_shared_bytes(&id, sizeof(Array), alignof(Array)));
}

template <class T>
T shuffle(unsigned mask, T v, int source, const char* file, int line) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &v, sizeof v);
  bits = warp_op(WarpOp::shuffle, mask, bits, source, file, line);
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

}  // namespace simt

#define SIMT_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(SIMT_SITE) { simt::barrier(file, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
  simt::warp_op(simt::WarpOp::sync, mask, 0, -1, file, line);
}
inline void __threadfence() { simt::fence(); }
inline void __threadfence_block() { simt::fence(); }

inline unsigned __ballot_sync(unsigned mask, int predicate, SIMT_SITE) {
  return static_cast<unsigned>(
      simt::warp_op(simt::WarpOp::ballot, mask, predicate != 0, -1, file, line));
}
inline int __any_sync(unsigned mask, int predicate, SIMT_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, SIMT_SITE) {
  return __ballot_sync(mask, predicate, file, line) == mask;
}

template <class T>
T __shfl_sync(unsigned mask, T v, int source, int width = 32, SIMT_SITE) {
  const int lane = static_cast<int>(simt::lane_id());
  return simt::shuffle(mask, v, (lane & ~(width - 1)) | (source & (width - 1)), file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, SIMT_SITE) {
  const int lane = static_cast<int>(simt::lane_id());
  const int source = lane - static_cast<int>(delta);
  return simt::shuffle(mask, v, source < (lane & ~(width - 1)) ? lane : source, file, line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, SIMT_SITE) {
  const int lane = static_cast<int>(simt::lane_id());
  const int source = lane + static_cast<int>(delta);
  return simt::shuffle(mask, v, source > (lane | (width - 1)) ? lane : source, file, line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, int flip, int width = 32, SIMT_SITE) {
  const int lane = static_cast<int>(simt::lane_id());
  const int source = lane ^ flip;
  return simt::shuffle(mask, v, source > (lane | (width - 1)) ? lane : source, file, line);
}

// Relaxed, like CUDA's: they order nothing but themselves.
template <class T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  static_assert(std::is_integral_v<T>);
  simt::maybe_yield();
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <class T, class F>
T simt_atomic_update(T* p, F f) {
  simt::maybe_yield();
  T old, next;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do {
    next = f(old);
  } while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
template <class T>
T atomicAdd(T* p, std::type_identity_t<T> v) {
  return simt_atomic_update(p, [v](T old) { return static_cast<T>(old + v); });
}
template <class T>
T atomicMax(T* p, std::type_identity_t<T> v) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicMax of floating point");
  return simt_atomic_update(p, [v](T old) { return old > v ? old : v; });
}
template <class T>
T atomicMin(T* p, std::type_identity_t<T> v) {
  static_assert(std::is_integral_v<T>, "CUDA has no atomicMin of floating point");
  return simt_atomic_update(p, [v](T old) { return old < v ? old : v; });
}
template <class T>
T atomicOr(T* p, std::type_identity_t<T> v) {
  return simt_atomic_update(p, [v](T old) { return old | v; });
}
template <class T>
T atomicExch(T* p, std::type_identity_t<T> v) {
  return simt_atomic_update(p, [v](T) { return v; });
}

template <class T>
T __ldg(const T* p) {
  return *p;
}
inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v == 0 ? 32 : __builtin_clz(static_cast<unsigned>(v)); }
inline int __float2int_rn(float v) { return static_cast<int>(__builtin_nearbyintf(v)); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(a) * b) >> 32);
}
/// Computes sin(pi x) and cos(pi x), for |x| < 2^51.
inline void sincospi(double x, double* sine, double* cosine) {
  const double half_turns = __builtin_nearbyint(2.0 * x);
  const long double angle =
      3.141592653589793238462643L * (x - 0.5 * half_turns);  // exact difference
  const double s = static_cast<double>(__builtin_sinl(angle));
  const double c = static_cast<double>(__builtin_cosl(angle));
  const auto quarter = static_cast<long long>(half_turns) & 3;
  *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
  *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}
