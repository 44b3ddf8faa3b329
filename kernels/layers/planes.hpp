#pragma once
#include "kernels/common/counted_planes.hpp"
#include "kernels/layers/epilogue.hpp"

namespace cudp::device {

/// Copies the images of a micro-batch from one layout to another, which may have a border of zeros
/// of another width: to = epilogue(from + bias of the channel). Border pixels are not written. Used
/// before and after calls of cuDNN, which supports no borders.
struct CopyPlanes {
  Batch batch;
  const float* from;
  CountedPlanes from_planes;
  float* to;
  CountedPlanes to_planes;
  const float* bias = nullptr;  ///< [channels], added to all pixels of a channel, or null
  Epilogue epilogue = {};       ///< none or value
};

inline void validate(const CopyPlanes& a) {
  validate(a.batch);
  validate(a.epilogue);
  expect(a.from != nullptr && a.to != nullptr && same_pixels(a.from_planes, a.to_planes) &&
             a.epilogue.kind != Epilogue::Kind::derivative,
         "copy of planes: expected pointers, equal sizes and no derivative");
}
inline LaunchShape launch_shape(const CopyPlanes& a) {
  return pixel_shape(a.batch, a.to_planes.pixels());
}

}  // namespace cudp::device
