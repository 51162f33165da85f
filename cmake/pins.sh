# shellcheck shell=bash
# What provision.sh downloads. Each: package, file, SHA-256 of what is taken of it and, if that is not all of it, where it begins and its length.
# The wheel of LibTorch is a zip: its headers and the libraries of a CPU build lie in one piece of it, those of CUDA in the next.
# shellcheck disable=SC2034
torch_wheel=torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl
torch_cpu_piece=(torch "$torch_wheel" 2e432e2a3323f744f76cb68bfdc104414103290314df84683cb49c3ef22744be 23716327 131379169)
torch_cuda_piece=(torch "$torch_wheel" bec2340c083cc06193a128d16b9353a863bb56596675cb4f544104023846f221 155095496 371891423)
torch_whole=(torch "$torch_wheel" 7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a)
cudart=(nvidia-cuda-runtime nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl
        7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548)
cupti=(nvidia-cuda-cupti nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl
       4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8)
imgui=(imgui-bundle imgui_bundle-1.92.801.tar.gz 7d790708affe7476969d397784b40eb91760a201ce752131e5bedf4d514e3a45)
