"""What stands for or against removing a result: pins, guards, later writes, the disk."""
