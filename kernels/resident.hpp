#pragma once
// The resident step of small networks (resident.cuh): one kernel takes the examples of a batch from
// the data set to a block's sum of clipped gradients, and one adds up the blocks. Nothing of a
// single example is ever in device memory.
#include <cmath>
#include <cstdint>

#include "kernels/activation.hpp"
#include "kernels/batch.hpp"
#include "kernels/clip.hpp"
#include "kernels/fixed_point.hpp"
#include "kernels/loss.hpp"

namespace cudp {

/// A block adds at most this many clipped gradients in 32-bit integers; see resident_unit.
inline constexpr int kResidentExamples = 31;

/// Every number of a clipped gradient is rounded to a multiple of this power of two, max_norm 2^-26
/// to max_norm 2^-25, and added as an integer. So an example adds the same whatever is in the batch
/// with it, in whatever order and by whatever block. The rounding moves a gradient of d numbers by
/// at most sqrt(d) unit / 2 (2.4e-6 max_norm for 26,010), and kResidentExamples of them, each of
/// norm at most max_norm (1 + 2^-7), stay below 2^31.
inline float resident_unit(float max_norm) { return std::ldexp(1.0f, std::ilogb(max_norm) - 25); }

/// slabs[block] = sum over the block's examples of their clipped gradients, in units; example k of
/// the micro-batch is block k mod blocks's. Blocks without examples write nothing.
struct ResidentSum {
  Batch batch;                    ///< room <= blocks * kResidentExamples
  const std::uint32_t* examples;  ///< numbers in the data set, from batch.first on
  const std::uint8_t* bytes;      ///< [data set, features], or null
  const float* floats;            ///< likewise; one of the two
  const std::uint8_t* labels;     ///< [data set]
  float scale;                    ///< a feature is scale * byte + shift
  float shift;
  const float* parameters;  ///< [d], flat in PyTorch's order
  Activate functions[3];    ///< behind each convolution and the hidden dense layer
  ClipSettings clip;
  float inverse_unit;
  int blocks;
  std::int32_t* slabs;   ///< [blocks, d]
  float* losses;         ///< [room], or null
  float* squared_norms;  ///< [room, 4 layers], or null with losses
  float* factors;        ///< [room, 4 layers], likewise
};

/// fixed[j] += sum of the blocks' slabs, exactly; where `sum` is given, sum[j] = fixed[j] unit,
/// rounded once, and fixed[j] = 0.
struct ResidentReduce {
  Batch batch;  ///< as ResidentSum's
  const std::int32_t* slabs;
  int blocks;
  std::int64_t n;  ///< d
  FixedPoint* fixed;
  float* sum;  ///< or null
  double unit;
};

inline void validate(const ResidentSum& a) {
  validate(a.batch);
  expect((a.bytes != nullptr) != (a.floats != nullptr), "resident: expected bytes or floats");
  expect(a.examples && a.labels && a.parameters && a.slabs, "resident: expected pointers");
  expect((a.losses == nullptr) == (a.squared_norms == nullptr) &&
             (a.losses == nullptr) == (a.factors == nullptr),
         "resident: expected all of the per-example results or none");
  expect(a.clip.max_norm > 0 && a.clip.max_norm < 1e30f && a.clip.stability > 0,
         "resident: expected a norm and stability that are finite and > 0");
  expect(a.inverse_unit > 0 && a.inverse_unit < INFINITY &&
             a.inverse_unit <= 1.0f / resident_unit(a.clip.max_norm),
         "resident: expected a unit that holds the clipping norm");
  expect(a.blocks > 0 && a.batch.room <= std::int64_t{a.blocks} * kResidentExamples,
         "resident: expected no more examples than the blocks' integers hold");
}

inline void validate(const ResidentReduce& a) {
  validate(a.batch);
  expect(a.slabs && a.blocks > 0 && a.n > 0 && a.fixed && a.unit > 0,
         "resident reduce: expected pointers, blocks, n > 0 and a unit");
}
/// A thread a number: 26,010 of them read some 132 slabs each.
inline LaunchShape launch_shape(const ResidentReduce& a) { return strided_shape(a.n, 128); }

}  // namespace cudp
