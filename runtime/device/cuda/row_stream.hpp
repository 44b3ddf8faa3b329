#pragma once
// Streaming of training rows that stay on the host because the device has too little memory for all
// of them.
//
// A batch depends only on the random key and the number of its step. So the host can draw the
// batches of the next steps (batch_draws.hpp). It copies the rows of these batches to pinned
// memory, and from there to a buffer on the device. The buffer also has a list for each batch: the
// position in the buffer of each of its examples. The recorded steps read these lists instead of
// indices of examples, and all kernels read rows at the listed positions. There are two buffers:
// while the device runs the steps of one, the host fills the other. Copies run in a CUDA stream of
// their own. They wait for the steps that read the buffer before, and the steps of the buffer wait
// for the copies.
//
// Each row of a step is copied once, and the step computes both its norm and its contribution from
// that copy, even if the file or array changes in the meantime. A step reads only the positions on
// its list, so older content of the buffer does not affect results. The list has the order of the
// batch, and no sum depends on a row's position. So results are the same, bit for bit, as with all
// rows on the device. The number of steps of a buffer depends only on the sizes of the buffer, of a
// row and of a list, not on the batches.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/threads.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/device/batch_draws.hpp"
#include "runtime/device/cuda/buffer.hpp"
#include "runtime/device/cuda/micro_batch.hpp"
#include "runtime/device/engine.hpp"

namespace cudp::cuda::inline CUDP_SIMT {

/// Device addresses from which the kernels of a step read its batch and its rows.
struct StepRows {
  DeviceData data;
  /// Batches that were drawn before the steps run; empty if each step draws its own batch.
  std::optional<BatchesAhead> batches = {};
};

/// Streams the rows of a training set that does not fit into device memory: draws the batches of
/// coming steps on the host, and copies their rows to one of kBuffers buffers on the device, while
/// the device runs the steps of another buffer.
class RowStream {
 public:
  static constexpr std::size_t kBuffers = 2;
  /// Size of a buffer for streamed rows [bytes]. A buffer is smaller if this exceeds 1/16 of the
  /// device's memory, and larger if the rows of a single step need more.
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 28;
  /// Largest number of steps whose rows are in one buffer at the same time.
  static constexpr std::size_t kMaxSteps = 256;

  /// Keeps references to the arguments. gpu: the device. train: the training set. settings:
  /// settings of the engine. shared: data that is the same for all rows, such as class weights, in
  /// device memory. sorts_words: whether an embedding is trained; the buffers then also have the
  /// positions of each text sorted by word.
  RowStream(Gpu& gpu, const Dataset& train, const EngineSettings& settings,
            const DeviceData& shared, bool sorts_words);

  /// Returns the size of one example in a buffer [bytes]. sorts_words: whether an embedding is
  /// trained, which needs the positions of each text sorted by word. train: the training set.
  static std::size_t bytes_of_row(const Dataset& train, bool sorts_words);

  const Dataset& train() const { return train_; }

  /// Allocates buffers for steps with batches of up to list_size examples, unless there are such
  /// buffers already. CUDA graphs that read earlier buffers must not be replayed afterwards.
  void reserve(std::size_t list_size);
  /// Returns the device addresses of the batches and rows in buffer number `buffer`. Valid until
  /// the next call of reserve().
  StepRows rows(std::size_t buffer) const;

  /// Consecutive steps whose batches and rows are in one buffer.
  struct Part {
    std::size_t buffer;
    std::size_t steps;
    /// Indices of the examples in the batches of the part's steps, one step after another.
    std::span<const std::uint32_t> examples;
  };
  /// Draws the batches of steps first, first + 1, ..., at most `steps` of them, and copies their
  /// rows to the next buffer. Later launches wait for the copy. Requires reserve(). Throws
  /// InputError if a row cannot be read from its file. draw: how the batches are drawn.
  Part stage(const Draw& draw, std::uint64_t first, std::size_t steps);
  /// Allows a later stage() to overwrite the buffer of this part. Call it after all steps of the
  /// part have been launched.
  void launched(const Part& part);

 private:
  /// One number for each array in a buffer: the array's size per example (widths_) or its offset in
  /// the buffer (at_) [bytes].
  struct Columns {
    std::size_t features = 0, targets = 0, lengths = 0, order = 0, labels = 1;
  };
  /// One of the kBuffers buffers: rows in host memory, and their copy in device memory.
  struct Buffers {
    Buffers(Gpu& gpu, std::size_t bytes)
        : host(gpu, bytes), device(gpu, bytes), copied(gpu.new_mark()), read(gpu.new_mark()) {}
    PinnedBuffer<std::uint8_t> host;
    Buffer<std::uint8_t> device;
    Gpu::Mark copied;  ///< all copies to `device` are done
    Gpu::Mark read;    ///< all steps that read `device` are done
  };

  static Columns widths_of_row(const Dataset& train, bool sorts_words);
  std::size_t counts_at() const { return sizeof(StepRange); }
  std::size_t list_at() const { return counts_at() + steps_ * sizeof(std::uint32_t); }
  void copy_rows(std::uint8_t* to);
  void send(Buffers& buffer, std::size_t steps);

  Gpu& gpu_;
  const Dataset& train_;
  const DeviceData& shared_;
  Columns widths_;
  ThreadTeam team_;
  BatchDraws draws_;
  std::size_t list_size_ = 0;
  std::size_t steps_ = 0;
  Columns at_{};
  std::array<std::optional<Buffers>, kBuffers> buffers_;
  std::size_t next_ = 0;                 // buffer of the next part
  std::vector<std::uint32_t> examples_;  // Part::examples of the last part
};

}  // namespace cudp::cuda::inline CUDP_SIMT
