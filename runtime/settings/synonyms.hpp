#pragma once
#include <span>

#include "runtime/base/nearest.hpp"

namespace cudp {

/// The names that Opacus, JAX-Privacy, TensorFlow Privacy, diffprivlib, scikit-learn and habit have
/// for options of cudp's commands; a name may stand for one option here and another there.
std::span<const Synonym> option_synonyms();

}  // namespace cudp
