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

/// Draws and reads the batches of a training one step ahead, if the features are in a file that is
/// larger than memory: the disk works while steps are computed and the next batch is drawn. A batch
/// depends on the key and the step alone, so this changes no result. A batch that was read ahead
/// and is not requested next is dropped.
class RowsAhead {
 public:
  /// Maximum size of a batch's features that is read ahead [bytes]. There are two such buffers.
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 27;

  /// Makes the object; returns null if the features are in memory, or if their file cannot be read
  /// ahead. Keeps references to `train` and `draws`.
  static std::unique_ptr<RowsAhead> open(const Dataset& train, BatchDraws& draws);

  struct Step {
    std::span<const std::uint32_t> batch;  ///< indices in the training set, ascending
    /// Data set that has the batch's features, and the indices of its examples there, in the same
    /// order.
    const Dataset* data = nullptr;
    std::span<const std::uint32_t> examples;
  };

  /// Returns a step's batch, valid until the next call, and starts to read the next step's.
  /// Requires a draw that does not depend on norms. Throws InputError if the file has become too
  /// short or cannot be read, or a record in it is not valid.
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

  /// Draws a step's batch and starts to read it, unless that was done already.
  Batch& begin(std::uint64_t step, const Draw& draw);
  /// Waits until a batch has been read, and checks it.
  void finish(Batch& batch);

  const Dataset& train_;
  BatchDraws& draws_;
  std::array<Batch, 2> batches_;  ///< batches of the latest even and odd step
  std::unique_ptr<RowReader> reader_;
};

}  // namespace cudp::cpu
