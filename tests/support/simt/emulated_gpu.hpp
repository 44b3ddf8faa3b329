#pragma once
// A Gpu for DeviceEngine whose kernels run under the SIMT emulator. Memory starts poisoned (0xff:
// NaN, -1) and is guarded behind its end by ASan, or by a pattern that is checked when it is
// released.
#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "kernels/common/launch.hpp"
#include "kernels/common/precision.hpp"
#include "kernels/common/simt.cuh"
#include "kernels/contribution/norm_total.cuh"
#include "kernels/features/scatter.hpp"
#include "kernels/fused/fused.hpp"
#include "kernels/products/dense_rows.hpp"
#include "kernels/step/finish.hpp"
#include "kernels/step/sample.cuh"
#include "kernels/step/step_size.hpp"
#include "kernels/step/update.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/out_of_memory.hpp"
#include "runtime/device/rank_sums.hpp"
#include "runtime/device/scratch_fill.hpp"
#include "tests/support/plain_convolution.hpp"
#include "tests/support/plain_recurrent.hpp"
#include "tests/support/poisoned_memory.hpp"
#include "tests/support/simt/simt_tensor.hpp"
#include "tests/support/test_device.hpp"

namespace cudp {

class EmulatedGpu {
 public:
  explicit EmulatedGpu(unsigned seed = 1, const DeviceLimits& limits = {.multiprocessors = 3})
      : EmulatedGpu(TestDevice{.seed = seed,
                               .shared_bytes = limits.shared_bytes,
                               .multiprocessors = limits.multiprocessors}) {}
  explicit EmulatedGpu(const TestDevice& d) : state_(std::make_unique<State>()) {
    state_->seed = d.seed;
    state_->copies_early = d.seed % 2 == 1;
    state_->dependents_early = d.seed % 2 == 1;
    state_->limits = {.multiprocessors = d.multiprocessors, .shared_bytes = d.shared_bytes};
    state_->batch_capacity = d.batch_capacity;
    state_->log = d.log;
    state_->runs = d.runs;
    state_->device_memory = d.memory;
    state_->failing_launch = d.failing_launch;
    state_->blas_by_place = d.blas_by_place;
    state_->sums = d.sums;
  }
  EmulatedGpu(EmulatedGpu&&) = default;
  EmulatedGpu& operator=(EmulatedGpu&&) = default;
  EmulatedGpu(const EmulatedGpu&) = delete;
  EmulatedGpu& operator=(const EmulatedGpu&) = delete;
  ~EmulatedGpu() {
    if (state_ && !state_->memory.empty()) std::abort();  // leaked
  }

  /// Allocates device memory. If kernels are not run, it is filled with 0, and unused pages cost
  /// nothing.
  void* allocate(std::size_t bytes) {
    if (bytes > state_->device_memory - state_->allocated)
      throw cuda::OutOfMemory("emulated GPU: there are no " + std::to_string(bytes) +
                              " bytes of memory left");
    void* const p = allocate_pinned(bytes);
    state_->allocated += bytes;
    return p;
  }
  void release(void* p) {
    state_->allocated -= state_->memory.at(p);
    release_pinned(p);
  }
  void clear(void* p, std::size_t bytes) {
    settle();
    if (maps(bytes))
      clear_poisoned(p, bytes);
    else if (state_->runs || bytes < kLarge)
      std::memset(p, 0, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) {
    settle();
    if (state_->log != nullptr) ++state_->log->waits;
    if (state_->runs || bytes < kLarge) std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) {
    settle();
    if (state_->log != nullptr) ++state_->log->waits;
    std::memcpy(to, from, bytes);
  }

  void copy(void* to, const void* from, std::size_t bytes) {
    settle();
    if (state_->runs || bytes < kLarge) std::memcpy(to, from, bytes);
  }

  std::size_t memory() const { return state_->device_memory; }
  std::size_t free_memory() const { return state_->device_memory - state_->allocated; }

  // Copies beside launches. From the first mark on a replay is run no sooner than something waits
  // for it. Copies are made as soon as they may (odd seeds) or as late, so that a wait that is
  // missing gives a step other rows.
  struct MarkPlace {
    std::size_t replays = 0, copies = 0;  // that are before the mark
  };
  using Mark = std::shared_ptr<MarkPlace>;
  Mark new_mark() {
    state_->defers = true;
    return std::make_shared<MarkPlace>();
  }
  void copy_beside(void* to, const void* from, std::size_t bytes) {
    state_->copies.push_back({to, from, bytes, state_->held_until});
    copy_early();
  }
  void mark(const Mark& m) { m->replays = state_->replays.size(); }
  void mark_copies(const Mark& m) { m->copies = state_->copies.size(); }
  void hold_copies(const Mark& m) { state_->held_until = std::max(state_->held_until, m->replays); }
  void await_copies(const Mark& m) {
    state_->replays.emplace_back([this, until = m->copies] { copy_until(until); });
  }
  void wait(const Mark& m) {
    replay_until(m->replays);
    copy_until(m->copies);
  }

  void* allocate_pinned(std::size_t bytes) {
    auto* const p = static_cast<unsigned char*>(maps(bytes)    ? map_poisoned(bytes + guard())
                                                : state_->runs ? std::malloc(bytes + guard())
                                                               : std::calloc(bytes + guard(), 1));
    if (p == nullptr) throw std::bad_alloc();
    if (state_->runs && !maps(bytes)) std::memset(p, 0xff, bytes);
    std::memset(p + bytes, kGuard, guard());
    state_->memory[p] = bytes;
    return p;
  }
  void release_pinned(void* p) {
    if (state_->held) std::exchange(state_->held, nullptr)();
    check_guard(p);
    const std::size_t bytes = state_->memory.at(p);
    state_->memory.erase(p);
    if (maps(bytes))
      munmap(p, poisoned_size(bytes + guard()));
    else
      std::free(p);
  }
  void upload_pinned(void* to, const void* from, std::size_t bytes) {
    settle();
    std::memcpy(to, from, bytes);
  }

  /// Returns whether scratch memory is filled before use (runtime/device/scratch_fill.hpp).
  bool fills_scratch() const { return state_->runs && scratch_fill().has_value(); }
  void fill_scratch(void* p, std::size_t bytes) {
    const std::optional<float> value = scratch_fill();
    if (!value || !state_->runs) return;
    static_assert(sizeof(wchar_t) == sizeof(float));
    const std::size_t whole = bytes / sizeof(float);
    std::wmemset(static_cast<wchar_t*>(p), std::bit_cast<wchar_t>(*value), whole);
    std::memcpy(static_cast<float*>(p) + whole, &*value, bytes % sizeof(float));
  }

  const DeviceLimits& limits() const { return state_->limits; }
  /// Allows launches of the kernel with `bytes` of dynamic shared memory. Without it a launch has
  /// at most 48 KB, as on a device.
  template <class... P>
  void allow_shared(void (*kernel)(P...), std::size_t bytes) {
    if (bytes > state_->limits.shared_bytes)
      throw std::runtime_error("emulated GPU: a kernel is allowed more than there is");
    state_->allowed[reinterpret_cast<void*>(kernel)] = bytes;
  }

  template <class... P, class... A>
  void launch(const char* name, void (*kernel)(P...), const LaunchShape& s, const A&... args) {
    start(name, kernel, s, args...);
  }
  void launch(const char* name, void (*kernel)(BatchesAhead, SampleSpace, std::uint32_t*),
              const LaunchShape& s, const BatchesAhead& ahead, SampleSpace space,
              std::uint32_t* drawn) {
    if (state_->batch_capacity > 0) space.capacity = state_->batch_capacity;
    start(name, kernel, s, ahead, space, drawn);
    if (!state_->runs) *space.count = begin_step(space, 0);
  }
  void launch(const char* name, void (*kernel)(SampleArgs, SampleSpace), const LaunchShape& s,
              const SampleArgs& args, SampleSpace space) {
    if (state_->batch_capacity > 0) space.capacity = state_->batch_capacity;
    start(name, kernel, s, args, space);
    // Of steps that are only recorded the cursor walks on, with batches of nobody.
    if (!state_->runs && kernel == sample_place_kernel) {
      *space.count = 0;
      if (space.range != nullptr) *space.range = {args.stream.step, args.stream.step + s.grid.y};
      if (space.cursor != nullptr) begin_step(space, 0);
    }
  }
  /// Launches a fused kernel. With an odd seed of the device a fused sum is run when the next
  /// operation begins. If that is a dependent launch, the sum runs after the part of the launch
  /// before its wait. So a result of the sum that is read before the wait changes the step.
  void launch(const char* name, void (*kernel)(FusedSum), const LaunchShape& s,
              const FusedSum& args) {
    start_one(name, kernel, s, args);
  }
  void launch(const char* name, void (*kernel)(FinishStep), const LaunchShape& s,
              const FinishStep& args) {
    finish(name, kernel, s, args, false);
  }
  void launch_dependent(const char* name, void (*kernel)(FinishStep), const LaunchShape& s,
                        const FinishStep& args) {
    finish(name, kernel, s, args, true);
  }
  void launch(const char* name, void (*kernel)(UpdateArgs, const StepScalars*, AdaptStepSize),
              const LaunchShape& s, const UpdateArgs& args, StepScalars* scalars,
              const AdaptStepSize& size) {
    start(name, kernel, s, args, scalars, size);
    if (!state_->runs && size.cursor != nullptr) size.cursor->awaits_update = 0;
  }

  void prepare_blas(Precision precision) {
    state_->has_blas = true;
    state_->blas_precision = precision;
  }
  /// Computes a matrix product as BLAS defines it; with factors rounded to TF32 if that was
  /// requested.
  void sgemm(char op_a, char op_b, int m, int n, int k, const float* a, int lda, const float* b,
             int ldb, float beta, float* c, int ldc) {
    if (!state_->has_blas) throw std::runtime_error("emulated GPU: sgemm before prepare_blas");
    if (lda < (op_a == 'N' ? m : k) || ldb < (op_b == 'N' ? k : n) || ldc < m)
      throw std::runtime_error("emulated GPU: sgemm: a leading dimension is too small");
    const bool tf32 = state_->blas_precision == Precision::tf32;
    const auto taken = [&](float v) { return tf32 ? simt::to_tf32(v) : v; };
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        float sum = 0.0f;
        for (int l = 0; l < k; ++l) {
          const std::size_t at_a =
              op_a == 'N' ? i + std::size_t(l) * lda : l + std::size_t(i) * lda;
          const std::size_t at_b =
              op_b == 'N' ? l + std::size_t(j) * ldb : j + std::size_t(l) * ldb;
          sum += taken(a[at_a]) * taken(b[at_b]);
        }
        if (state_->blas_by_place && j % 16 == 15) sum *= 1.0f + 0x1p-23f;
        float& to = c[i + std::size_t(j) * ldc];
        to = sum + (beta != 0.0f ? beta * to : 0.0f);
      }
  }

  /// Replaces cuBLASLt: computes the forward pass of a dense layer.
  void dense(const DenseRows& a) {
    validate(a);
    sgemm('T', 'N', a.outputs, a.rows, a.inputs, a.weight, a.inputs, a.x, a.inputs, 0.0f, a.y,
          a.outputs);
    for (int i = 0; i < a.rows * a.outputs; ++i) {
      const float v = a.y[i] + a.bias[i % a.outputs];
      a.y[i] = a.relu && v < 0.0f ? 0.0f : v;
    }
  }

  /// Replaces cuDNN.
  void prepare_dnn() { state_->has_dnn = true; }
  void convolve(const ConvolutionBatch& a) {
    validate(a);
    if (!state_->has_dnn) throw std::runtime_error("emulated GPU: convolve before prepare_dnn");
    if (state_->log != nullptr) state_->log->launches.emplace_back("library's convolution");
    if (state_->runs) convolve_plainly(a, a.precision == Precision::tf32);
  }
  void recur(const RecurrentBatch& a) {
    validate(a);
    if (!state_->has_dnn) throw std::runtime_error("emulated GPU: recur before prepare_dnn");
    if (state_->log != nullptr) state_->log->launches.emplace_back("library's recurrent layer");
    if (state_->runs) recur_plainly(a, a.precision == Precision::tf32);
  }

  /// Replaces CUB's reduction.
  void total_norms(const NormTotal& a) {
    validate(a);
    clear(a.total, sizeof *a.total);
    launch("norm total", norm_total_kernel, launch_shape(a), a);
  }

  /// Computes a discrete Fourier transform from its definition, one axis after the other; the
  /// inverse does not divide.
  void fourier(int rows, int columns, int images, ComplexFloat* z, bool inverse) {
    const auto lines = [&](ComplexFloat* line, int n, int step) {
      std::vector<std::complex<double>> from, roots;
      for (int j = 0; j < n; ++j) {
        from.emplace_back(line[std::ptrdiff_t{j} * step].re, line[std::ptrdiff_t{j} * step].im);
        roots.push_back(std::polar(1.0, (inverse ? 2.0 : -2.0) * 3.14159265358979323846 * j / n));
      }
      for (int k = 0; k < n; ++k) {
        std::complex<double> sum = 0.0;
        for (int j = 0; j < n; ++j) sum += from[std::size_t(j)] * roots[std::size_t(j) * k % n];
        line[std::ptrdiff_t{k} * step] = {float(sum.real()), float(sum.imag())};
      }
    };
    for (int i = 0; i < images; ++i, z += std::ptrdiff_t{rows} * columns) {
      for (int y = 0; y < rows; ++y) lines(z + std::ptrdiff_t{y} * columns, columns, 1);
      for (int x = 0; x < columns; ++x) lines(z + x, rows, columns);
    }
  }

  /// Replaces NCCL by sums on the host. A replay computes them at their position among the launches
  /// of the recording.
  DeviceSums device_sums() const {
    return {
        .refusal = state_->sums.refusal,
        .library = state_->sums.library,
        .device = state_->sums.device.empty() ? std::to_string(::getpid()) : state_->sums.device,
        .may_share = state_->sums.may_share};
  }
  static std::string id_for_sums() { return "the emulator's"; }
  void join_ranks(Ranks& ranks, const std::string& id) {
    if (id != id_for_sums()) throw Error("another id");
    if (!state_->sums.fails.empty()) throw Error(state_->sums.fails);
    state_->ranks = &ranks;
  }
  void leave_ranks() { state_->ranks = nullptr; }
  void sum_over_ranks(std::uint64_t* words, std::size_t n) {
    if (state_->ranks == nullptr) throw std::runtime_error("emulated GPU: no ranks to add up with");
    if (state_->log != nullptr) ++state_->log->rank_sums;
    if (state_->sums.words_left_out > n) throw std::runtime_error("emulated GPU: too few words");
    state_->ranks->sum("the sum of a step",
                       {reinterpret_cast<std::int64_t*>(words), n - state_->sums.words_left_out});
  }

  /// Records the launches of `work`, without running them, as on a device.
  using Recording = std::function<void()>;
  Recording record(const std::function<void()>& work) {
    if (state_->log != nullptr) ++state_->log->recordings;
    return work;
  }
  void replay(const Recording& r) {
    if (!state_->defers) return r();
    state_->replays.push_back(r);
  }

 private:
  void finish(const char* name, void (*kernel)(FinishStep), const LaunchShape& s, FinishStep args,
              bool is_dependent) {
    const NextStep& next = args.next;
    if (state_->batch_capacity > 0) args.next.space.capacity = state_->batch_capacity;
    start_one(name, kernel, s, args, is_dependent);
    if (state_->runs || next.drawn == nullptr) return;
    const StepCursor& c = *next.space.cursor;
    if (next.batches.range->has(c.first + c.index)) begin_step(next.space, 0);
  }

  template <class Args>
  void start_one(const char* name, void (*kernel)(Args), const LaunchShape& s, const Args& args,
                 bool is_dependent = false) {
    std::function<void()> primary;
    if (is_dependent) primary = std::exchange(state_->held, nullptr);
    note(name);
    if (!state_->runs) return;
    if (is_dependent && state_->dependents_early && !primary)
      throw std::runtime_error("emulated GPU: a dependent launch not directly after a fused sum");
    simt::Options options = options_of(name, reinterpret_cast<void*>(kernel));
    options.is_dependent = is_dependent;
    options.primary = std::move(primary);
    const auto run = [kernel, s, args, options] {
      simt::launch(kernel, dim3(s.grid.x, s.grid.y, s.grid.z),
                   dim3(s.block.x, s.block.y, s.block.z), s.shared_bytes, options, args);
    };
    if (state_->dependents_early && std::string_view(name) == "fused sum")
      state_->held = run;
    else
      run();
  }
  template <class... P, class... A>
  void start(const char* name, void (*kernel)(P...), const LaunchShape& s, const A&... args) {
    note(name);
    if (!state_->runs) return;
    simt::launch(kernel, dim3(s.grid.x, s.grid.y, s.grid.z), dim3(s.block.x, s.block.y, s.block.z),
                 s.shared_bytes, options_of(name, reinterpret_cast<void*>(kernel)), args...);
  }
  /// Notes a launch, after all that came before it.
  void note(const char* name) {
    settle();
    if (state_->log != nullptr) state_->log->launches.emplace_back(name);
    if (++state_->launches == state_->failing_launch)
      throw Error(std::string("CUDA: ") + name + ": an emulated device fails");
  }
  simt::Options options_of(const char* name, void* kernel) {
    simt::Options options{.name = name, .seed = ++state_->seed};
    const auto allowed = state_->allowed.find(kernel);
    if (allowed != state_->allowed.end())
      options.max_shared = std::max(options.max_shared, allowed->second);
    return options;
  }

  /// Runs the launch that was held back for a dependent one, and the replays that were deferred,
  /// before the host accesses the device's memory.
  void settle() {
    if (state_->held) std::exchange(state_->held, nullptr)();
    if (state_->defers && !state_->is_replaying) replay_until(state_->replays.size());
  }
  void replay_until(std::size_t end) {
    while (state_->replayed < end) {
      const std::function<void()> work = std::move(state_->replays[state_->replayed]);
      state_->is_replaying = true;
      work();
      state_->is_replaying = false;
      ++state_->replayed;
      copy_early();
    }
  }
  void copy_until(std::size_t end) {
    while (state_->copied < end) {
      const Copy c = state_->copies[state_->copied];
      if (c.after > state_->replayed) {
        if (state_->is_replaying)
          throw std::runtime_error("emulated GPU: a step waits for copies that wait for it");
        replay_until(c.after);  // which may make the copy
        continue;
      }
      std::memcpy(c.to, c.from, c.bytes);
      ++state_->copied;
    }
  }
  void copy_early() {
    while (state_->copies_early && state_->copied < state_->copies.size() &&
           state_->copies[state_->copied].after <= state_->replayed)
      copy_until(state_->copied + 1);
  }

  static constexpr unsigned char kGuard = 0xa5;
  static constexpr std::size_t kLarge = std::size_t{1} << 20;  // without kernels nobody reads it
  static std::size_t guard() { return simt::overruns_end_the_program() ? 0 : 64; }
  /// Returns whether an allocation of this size is mapped instead of allocated by malloc, whose
  /// memory ASan guards.
  bool maps(std::size_t bytes) const {
    return state_->runs && bytes >= kPoisonedPiece && !simt::overruns_end_the_program();
  }
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes, after;  // as many replays
  };
  struct State {
    unsigned seed = 1;
    bool defers = false, copies_early = false, is_replaying = false;
    bool dependents_early = false;
    std::function<void()> held = nullptr;  // a fused sum that has not run yet
    std::vector<std::function<void()>> replays;
    std::vector<Copy> copies;
    std::size_t replayed = 0, copied = 0, held_until = 0;
    bool has_blas = false;
    bool has_dnn = false;
    Precision blas_precision = Precision::fp32;
    DeviceLimits limits;
    std::uint32_t batch_capacity = 0;
    DeviceLog* log = nullptr;
    bool runs = true;
    std::size_t device_memory = 0;
    std::size_t allocated = 0;  // of it
    std::size_t failing_launch = 0;
    bool blas_by_place = false;
    RankSumsOfTest sums;
    Ranks* ranks = nullptr;  // with whom sums are added up on the device
    std::size_t launches = 0;
    std::map<void*, std::size_t> allowed;  // bytes of shared memory, by kernel
    std::map<void*, std::size_t> memory;
  };
  void check_guard(void* p) const {
    const auto* end = static_cast<unsigned char*>(p) + state_->memory.at(p);
    for (std::size_t i = 0; i < guard(); ++i)
      if (end[i] != kGuard) {
        std::fputs("emulated GPU: written past the end of an allocation\n", stderr);
        std::abort();
      }
  }
  std::unique_ptr<State> state_;
};

}  // namespace cudp
