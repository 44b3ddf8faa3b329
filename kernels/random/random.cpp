#include "kernels/random/random.hpp"

#include <stdexcept>
#include <string>

namespace cudp {

void validate(const RandomStream& stream, std::int64_t begin, std::int64_t end) {
  if (begin < 0 || begin % 256 != 0)
    throw std::invalid_argument(
        "random stream: expected a begin >= 0 that is a multiple of 256, found " +
        std::to_string(begin));
  if (end < begin || end > std::int64_t{1} << 36)
    throw std::invalid_argument("random stream: expected an end in " + std::to_string(begin) +
                                "..2^36, found " + std::to_string(end));
  if (stream.generator == Generator::philox && stream.step >> 32 != 0)
    throw std::invalid_argument("random stream: expected a step below 2^32 for philox, found " +
                                std::to_string(stream.step));
}

}  // namespace cudp
