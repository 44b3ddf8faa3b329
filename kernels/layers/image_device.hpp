#pragma once
#include "kernels/common/launch.hpp"

namespace cudp {

/// The examples of a micro-batch, from the resident data set to planes of floats:
/// x = scale * byte + shift, or the float as it is; and their labels.
struct BatchLoad {
  Batch batch;
  const std::uint32_t* examples;  ///< numbers in the data set, from batch.first on; null: 0, 1, ...
  const std::uint8_t* bytes;      ///< [data set, pixels], or null
  const float* floats;            ///< likewise; one of the two
  const std::uint8_t* labels;     ///< [data set]
  float scale;
  float shift;
  Planes planes;
  float* x;               ///< [room, planes.size()]
  std::uint8_t* x_label;  ///< [room]
};

inline void validate(const BatchLoad& a) {
  validate(a.batch);
  expect((a.bytes != nullptr) != (a.floats != nullptr), "load: expected bytes or floats");
  expect(a.labels != nullptr && a.x != nullptr && a.x_label != nullptr, "load: expected pointers");
}

inline LaunchShape launch_shape(const BatchLoad& a) {
  return strided_shape(std::int64_t{a.batch.room} * a.planes.pixels());
}

}  // namespace cudp
