#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/step/step_cursor.hpp"
#include "runtime/base/error.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Device memory with two things: how far a run of steps has come (StepCursor), and the list of the
/// steps' scalars (learning rate, noise, ...). The host writes both in one copy before the steps,
/// and reads them after the steps.
class RunPosition {
 public:
  /// Allocates the memory for a network with `parameters` parameters. The more parameters, the
  /// fewer steps can be submitted at once. The reason: with a small probability per parameter,
  /// double precision cannot decide how to round a noise number of a step. The host must then
  /// compute the number. All steps that were submitted after that step do nothing and must be
  /// submitted again.
  RunPosition(Gpu& gpu, std::size_t parameters)
      : gpu_(gpu),
        max_steps_(std::clamp<std::size_t>((std::size_t{1} << 26) / parameters, 1, 4096)),
        host_(gpu, bytes_of(max_steps_)),
        device_(gpu, bytes_of(max_steps_)) {
    device_.clear();
  }

  /// Returns the largest number of steps that can be submitted at once.
  std::size_t max_steps() const { return max_steps_; }

  StepCursor* cursor() const { return reinterpret_cast<StepCursor*>(device_.get()); }
  ListedStep* list() const {
    return reinterpret_cast<ListedStep*>(device_.get() + sizeof(StepCursor));
  }
  const SumScale* scale() const { return &cursor()->scale; }
  const ImportanceRule* candidates() const { return &cursor()->candidates; }

  /// Writes the progress and the list of scalars for the next launches, which run steps.size()
  /// steps, at most max_steps(), from step number cursor.first on. cursor: the values that are the
  /// same for all steps. Call wait() before the next call of start().
  void start(StepCursor cursor, std::span<const ListedStep> steps) {
    ensure(steps.size() <= max_steps_, "too many steps for a submission");
    cursor.end = static_cast<std::uint32_t>(steps.size());
    std::memcpy(host_.get(), &cursor, sizeof cursor);
    std::memcpy(host_.get() + sizeof cursor, steps.data(), steps.size_bytes());
    gpu_.upload_pinned(device_.get(), host_.get(), sizeof cursor + steps.size_bytes());
  }

  /// Lets the next launches repeat the step whose batch was too large for the CUDA graph. Call it
  /// after the step has been recorded again for larger batches. at: the progress of the run,
  /// returned by wait().
  void raise_capacity(StepCursor at) {
    at.oversized_batch = 0;
    std::memcpy(host_.get(), &at, sizeof at);
    gpu_.upload_pinned(device_.get(), host_.get(), sizeof at);
  }

  /// Waits for the device and returns the run's progress. Throws Error with the message
  /// kBatchTooLarge if a batch was larger than the memory for it, so that the run cannot continue.
  StepCursor wait() const {
    StepCursor c;
    gpu_.download(&c, device_.get(), sizeof c);
    return checked(c);
  }

  /// Waits for the device and returns the run's progress. Also reads the list's first steps.size()
  /// entries into `steps`, because the device may have changed them. Throws Error with the message
  /// kBatchTooLarge if a batch was larger than the memory for it, so that the run cannot continue.
  StepCursor wait(std::span<ListedStep> steps) const {
    std::vector<std::byte> all(sizeof(StepCursor) + steps.size_bytes());
    gpu_.download(all.data(), device_.get(), all.size());
    StepCursor c;
    std::memcpy(&c, all.data(), sizeof c);
    std::memcpy(steps.data(), all.data() + sizeof c, steps.size_bytes());
    return checked(c);
  }

 private:
  static StepCursor checked(const StepCursor& c) {
    if (c.failed == kBatchFailed) throw Error(kBatchTooLarge);
    ensure(c.failed != kNotDrawn, "a step began whose batch had not been drawn");
    ensure(c.failed == 0, "a step began before the one before it had ended");
    return c;
  }
  static std::size_t bytes_of(std::size_t steps) {
    return sizeof(StepCursor) + steps * sizeof(ListedStep);
  }
  static_assert(sizeof(StepCursor) % alignof(ListedStep) == 0);

  Gpu& gpu_;
  std::size_t max_steps_;
  PinnedBuffer<std::byte> host_;
  Buffer<std::byte> device_;
};

}  // namespace cudp::cuda::inline CUDP_SIMT
