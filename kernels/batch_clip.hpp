#pragma once
#include "kernels/batch.hpp"
#include "kernels/clip.hpp"

namespace cudp {

/// parts[e] = (|x_e|^2 + 1) |dy_e|^2: the squared norm of a dense layer's gradient, x dy' and its
/// bias's dy, without forming it.
struct DenseGradientNorm {
  Batch batch;
  const float* x;  ///< [room, inputs]
  int inputs;
  const float* dy;  ///< [room, outputs]
  int outputs;
  float* parts;  ///< [room]
};

/// Every example's clip factors from the parts of its squared norms: group g's are rows
/// group_parts[g] .. group_parts[g + 1] - 1 of parts [., room], added in that order.
struct BatchClip {
  Batch batch;
  ClipSettings clip;
  const float* parts;
  const std::int32_t* group_parts;  ///< [groups + 1]
  int groups;
  float* squared_norms;  ///< [room, groups], written
  float* factors;        ///< [room, groups], written; all 0 for a non-finite example
};

inline void validate(const DenseGradientNorm& a) {
  validate(a.batch);
  expect(a.x && a.dy && a.parts && a.inputs > 0 && a.outputs > 0,
         "dense norm: expected pointers and sizes > 0");
}
/// A warp an example.
inline LaunchShape launch_shape(const DenseGradientNorm& a) {
  return strided_shape(std::int64_t{a.batch.room} * 32);
}

inline void validate(const BatchClip& a) {
  validate(a.batch);
  expect(a.clip.max_norm > 0 && a.clip.max_norm < 1e30f && a.clip.stability > 0,
         "clip: expected a norm and stability that are finite and > 0");
  expect(a.parts && a.group_parts && a.groups > 0 && a.squared_norms && a.factors,
         "clip: expected pointers");
}
inline LaunchShape launch_shape(const BatchClip& a) { return strided_shape(a.batch.room, 64); }

}  // namespace cudp
