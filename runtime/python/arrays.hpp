#pragma once
#include <memory>
#include <string>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "runtime/data/given_arrays.hpp"

namespace cudp::python {

/// Array passed from Python (e.g. NumPy's), in the memory of the CPU; read-only.
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

/// Converts an array from Python to the type with which the program reads data in memory. The
/// result shares the array's memory and keeps it alive. name: name of the array in messages. Throws
/// InputError if the array is not of numbers, or has no dimension.
GivenArray given_array(const AnyArray& array, const std::string& name);

/// Converts two arrays from Python: x, the features of examples, and y, their labels; y may be None
/// if there are no labels. suffix: appended to the arrays' names, X and y, in messages. Throws
/// InputError if an argument is not an array of numbers.
LabelledArrays labelled_arrays(nanobind::handle x, nanobind::handle y, const std::string& suffix);

}  // namespace cudp::python
