#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.hpp"

namespace cudp {

/// Content of a safetensors file: parameters with names and shapes, and a map of texts.
struct TensorFile {
  std::vector<ParameterTensor> tensors;  ///< only name, shape, offset and size are used
  std::vector<float> values;             ///< values of all tensors, at their offsets
  std::map<std::string, std::string> metadata;
};

/// Returns the bytes of a safetensors file: 64-bit header length, JSON header, float32 data that
/// starts at a multiple of 64 bytes. The same input gives the same bytes.
std::string encode_safetensors(const TensorFile& file);

/// Reads a file of float32 tensors, made by encode_safetensors or another writer. `source` names
/// the file in errors. Throws InputError if the file is malformed.
TensorFile decode_safetensors(std::string_view bytes, const std::string& source);

/// Reads the tensors of floating-point numbers (F16, BF16, F32, F64), converted to float32, and
/// skips tensors of other types. Throws InputError if the file is malformed, or on a number that is
/// not finite.
TensorFile decode_floats(std::string_view bytes, const std::string& source);

/// A matrix of floats, row-major.
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<float> values;  ///< [rows, columns]
};

/// Reads one matrix of float32 or float16 numbers from a safetensors file: the tensor with that
/// name, or if `name` is empty the only one with two dimensions. Other tensors may have any type.
/// Throws InputError, with the names of the matrices in the file, if `name` does not determine one;
/// and on a number that is not finite.
Matrix decode_matrix(std::string_view bytes, const std::string& source, const std::string& name);

}  // namespace cudp
