#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "privacy/mechanism.hpp"
#include "privacy/pld/composed_loss.hpp"

namespace cudp::privacy::pld {

enum class Side : std::uint8_t { add, remove, replace };

/// The steps' dominating losses, equal steps together. Of more than `most` different ones,
/// Gaussian, Poisson-sampled and fixed-size steps are grouped by noise and sampling rate: a group
/// counts from above as its least noise and highest rate, from below as the opposite. The loss
/// grows with the rate and falls with the noise: less noise is undone by adding some, a higher rate
/// by leaving examples out.
std::vector<LossClass> classes_of(std::span<const Release> steps, Side side, std::uint64_t k,
                                  std::size_t most);

}  // namespace cudp::privacy::pld
