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

/// Device memory for the progress of a sequence of steps (StepCursor) and the list of their scalars
/// (learning rate, noise, ...). The host writes both in one copy, and reads them when the steps are
/// done.
class RunPosition {
 public:
  /// parameters: number of parameters of the network. The more there are, the sooner double
  /// precision is too coarse to round a pair of noise numbers (kernels/step/finish.hpp). The host
  /// must then compute the pair, and later steps that were submitted already are wasted. So a
  /// larger network gets fewer steps per submission.
  RunPosition(Gpu& gpu, std::size_t parameters)
      : gpu_(gpu),
        max_steps_(std::clamp<std::size_t>((std::size_t{1} << 26) / parameters, 1, 4096)),
        host_(gpu, bytes_of(max_steps_)),
        device_(gpu, bytes_of(max_steps_)) {
    device_.clear();
  }

  /// Largest number of steps that can be submitted at once.
  std::size_t max_steps() const { return max_steps_; }

  StepCursor* cursor() const { return reinterpret_cast<StepCursor*>(device_.get()); }
  ListedStep* list() const {
    return reinterpret_cast<ListedStep*>(device_.get() + sizeof(StepCursor));
  }
  const SumScale* scale() const { return &cursor()->scale; }
  const ImportanceRule* candidates() const { return &cursor()->candidates; }

  /// Writes progress and list for the next launches, which run steps.size() steps, at most
  /// max_steps(), from step cursor.first on. cursor: the values that are the same for all steps.
  /// wait() must be called before the next call.
  void start(StepCursor cursor, std::span<const ListedStep> steps) {
    ensure(steps.size() <= max_steps_, "too many steps for a submission");
    cursor.end = static_cast<std::uint32_t>(steps.size());
    std::memcpy(host_.get(), &cursor, sizeof cursor);
    std::memcpy(host_.get() + sizeof cursor, steps.data(), steps.size_bytes());
    gpu_.upload_pinned(device_.get(), host_.get(), sizeof cursor + steps.size_bytes());
  }

  /// Allows the next launches to start the step whose batch exceeded the capacity of the CUDA
  /// graph. Call when the step has been recorded again with a larger capacity. at: the result of
  /// wait().
  void raise_capacity(StepCursor at) {
    at.oversized_batch = 0;
    std::memcpy(host_.get(), &at, sizeof at);
    gpu_.upload_pinned(device_.get(), host_.get(), sizeof at);
  }

  /// Waits for the device and returns the run's progress. Throws Error (kBatchTooLarge) if a batch
  /// was larger than its capacity and the run cannot continue.
  StepCursor wait() const {
    StepCursor c;
    gpu_.download(&c, device_.get(), sizeof c);
    return checked(c);
  }

  /// Waits for the device and returns the run's progress, like wait(). Also reads the first
  /// steps.size() entries of the list, which the device may have changed.
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
