#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernels/step/recipe.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/data/examples.hpp"
#include "runtime/data/row_reader.hpp"
#include "runtime/device/batch_draws.hpp"

namespace cudp::cpu {

/// Draws the batch of the next step, and reads its rows, while the current step is computed. Used
/// if the features are in a file that is larger than memory, so that the disk works all the time. A
/// batch depends only on the random key and the step, so this does not change any result. A batch
/// that was read ahead but is not requested next is discarded.
class RowsAhead {
 public:
  /// Maximum size of a batch's features for which the batch is read ahead [bytes]. There are two
  /// buffers of this size.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 27;

  /// Makes an object for a training set. Returns null if its features are in memory, or if its file
  /// cannot be read ahead. Keeps references to `train` and `draws`.
  static std::unique_ptr<RowsAhead> open(const Dataset& train, BatchDraws& draws);

  struct Step {
    std::span<const std::uint32_t> batch;  ///< indices in the training set, ascending
    /// A data set that contains the batch's features. `examples` are the indices in it of the
    /// batch's examples, in the order of the batch.
    const Dataset* data = nullptr;
    std::span<const std::uint32_t> examples;
  };

  /// Returns the batch of a step, valid until the next call, and starts to read the batch of the
  /// step after it. Requires a draw that does not depend on gradient norms. Throws InputError if
  /// the file is too short by now, cannot be read, or has a record that is not valid.
  Step take(std::uint64_t step, const Draw& draw);

 private:
  struct Batch {
    std::optional<std::uint64_t> step;
    Draw draw;
    std::vector<std::uint32_t> drawn;
    bool is_read = false;  ///< features are in `copies`, or on their way
    FetchedExamples copies;
    RowReader::List reading;
  };

  RowsAhead(const Dataset& train, BatchDraws& draws, std::unique_ptr<RowReader> reader);

  /// Draws the batch of a step and starts to read its rows, unless that was done already.
  Batch& begin(std::uint64_t step, const Draw& draw);
  /// Waits until the rows of a batch have been read, and checks that they are valid.
  void finish(Batch& batch);

  const Dataset& train_;
  BatchDraws& draws_;
  std::array<Batch, 2> batches_;  ///< batches of the latest even and odd step
  std::unique_ptr<RowReader> reader_;
};

}  // namespace cudp::cpu
